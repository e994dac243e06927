// Small parts that many views use.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ago, exact } from "../format.ts";
import { visible } from "../viewer/text.ts";

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at)}
    </time>
  );
}

/** The time of day to the second, for a list in the order of time. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {new Date(at).toLocaleTimeString()}
    </time>
  );
}

/** Text that a tool or an agent chose: nothing in it moves the cursor or hides. */
export function Name({ text, empty = "–" }: { text: string; empty?: string }) {
  return text ? <bdi class="name">{visible(text)}</bdi> : <span class="quiet">{empty}</span>;
}

/** Copies a text, which may have to be fetched first. */
export function Copy({ text, label }: { text: string | (() => Promise<string>); label: string }) {
  const [said, setSaid] = useState("");
  const say = (word: string) => {
    setSaid(word);
    setTimeout(() => setSaid(""), 1500);
  };
  const copy = async () => navigator.clipboard.writeText(typeof text === "string" ? text : await text());
  return (
    <button
      type="button"
      class="small"
      onClick={() => void copy().then(() => say("Copied"), () => say("Not copied"))}
      title={typeof text === "string" ? text : undefined}
    >
      {said || label}
    </button>
  );
}

export function Trouble({ problem }: { problem: Error }) {
  return (
    <p class="trouble" role="alert">
      {problem.message}
    </p>
  );
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="empty">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Waiting() {
  return (
    <p class="quiet" role="status">
      Loading…
    </p>
  );
}
