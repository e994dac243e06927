// Times, names and states as text.
import { ago, clock, exact } from "../format.ts";
import type { Entry } from "../service/wire.ts";
import { visible } from "../viewer/text.ts";
import { useNow } from "./now.ts";

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, useNow())}
    </time>
  );
}

/** A time to the second, for a list in the order of time. */
export function Clock({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {clock(at, useNow())}
    </time>
  );
}

/** Text that a tool or an agent chose: nothing in it moves the cursor or hides. All of it is behind a long one. */
export function Name({ text, empty = "–" }: { text: string; empty?: string }) {
  if (!text) return <span class="quiet">{empty}</span>;
  const shown = visible(text);
  return <bdi class="name" title={shown.length > 30 ? shown : undefined}>{shown}</bdi>;
}

const GOOD = /^(ok|success|succeeded|passed|completed?|done|(exit )?0)$/i;
const BAD = /^(err(or)?|fail(ed|ure)?|exception|timeout|timed.?out|denied|cancel(l?ed)?|killed|crashed|exit [1-9]\d*)\b/i;

/** How a call ended as far as anybody said, or that its output is not whole. */
export function Outcome({ entry, empty = "–" }: { entry: Entry; empty?: string }) {
  if (entry.state !== "complete") return <StatePill state={entry.state} />;
  if (!entry.status) return empty ? <span class="quiet">{empty}</span> : null;
  const kind = GOOD.test(entry.status) ? "good" : BAD.test(entry.status) ? "bad" : "";
  return <span class={`status ${kind}`}><Name text={entry.status} /></span>;
}

const STATES: Record<string, string> = {
  live: "It is still being written",
  partial: "Its producer vanished before its end",
};

export function StatePill({ state }: { state: Entry["state"] }) {
  return <span class={`state ${state}`} title={STATES[state]}>{state}</span>;
}
