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

export function Copy({ text, label }: { text: string; label: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="small" onClick={() => void copy()} title={text}>
      {isDone ? "Copied" : label}
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
