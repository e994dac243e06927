// What is there to be copied.
import { useRef, useState } from "preact/hooks";
import { visible } from "../viewer/text.ts";

const SAID_MS = 1500;

interface CopyProps {
  text: string | (() => Promise<string>);
  label: string;
  /** What it copies, if the label does not say that by itself. */
  name?: string;
  title?: string;
}

/** Copies a text, which may have to be fetched first. */
export function Copy({ text, label, name, title }: CopyProps) {
  const [said, setSaid] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const say = (word: string) => {
    setSaid(word);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setSaid(""), SAID_MS);
  };
  const copy = async () => navigator.clipboard.writeText(typeof text === "string" ? text : await text());
  return (
    <button
      type="button"
      class="small copy"
      onClick={() => void copy().then(() => say("Copied"), (problem: Error) => say(problem.name === "Error" ? problem.message : "Not copied"))}
      aria-label={said ? undefined : name}
      title={title ?? (typeof text === "string" ? text : undefined)}
    >
      <span class={said ? "said" : ""}>{said || label}</span>
    </button>
  );
}

/** Code to copy. Long lines are wrapped, and copied as they are. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre role="region" aria-label={label}>{visible(text)}</pre>
      <Copy text={text} label="Copy" />
    </div>
  );
}
