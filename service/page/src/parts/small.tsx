// Small parts that many views use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry } from "../api.ts";
import { ago, clock, exact, sentence } from "../format.ts";
import { visible } from "../viewer/text.ts";

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at)}
    </time>
  );
}

/** A time to the second, for a list in the order of time. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {clock(at)}
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

/** How a call ended as far as anybody said, or that its output is not whole. */
export function Outcome({ entry, empty }: { entry: Entry; empty?: string }) {
  if (entry.state !== "complete") return <span class={`state ${entry.state}`}>{entry.state}</span>;
  return <Name text={entry.status} {...(empty === undefined ? {} : { empty })} />;
}

export function Trouble({ problem }: { problem: Error }) {
  return (
    <p class="trouble" role="alert">
      {sentence(problem.message)}
    </p>
  );
}

/** What to do next where nothing is shown. `isPage`: there is nothing else on the page. */
export function Empty({ title, isPage = false, children }: { title: string; isPage?: boolean; children: ComponentChildren }) {
  return (
    <section class="empty">
      {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </section>
  );
}

/** Code to copy. It scrolls sideways on narrow screens, by keys too. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} role="region" aria-label={label}>{visible(text)}</pre>
      <Copy text={text} label="Copy" />
    </div>
  );
}

/** A table that scrolls inside of its box, by keys too. */
export function Scrolling({ label, isShort = false, children }: { label: string; isShort?: boolean; children: ComponentChildren }) {
  return (
    <div class={`scrolling ${isShort ? "short" : ""}`} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

/** Ask before something is done that nobody can undo. */
export function Confirm({ title, action, onDo, onClose, children }: { title: string; action: string; onDo(): void; onClose(): void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="confirm">
      <h2 id="confirm">{title}</h2>
      {children}
      <p class="actions">
        <button type="button" autofocus onClick={() => dialog.current?.close()}>Cancel</button>
        <button type="button" class="danger" onClick={() => (dialog.current?.close(), onDo())}>{action}</button>
      </p>
    </dialog>
  );
}

export function Waiting() {
  return (
    <p class="quiet" role="status">
      Loading…
    </p>
  );
}
