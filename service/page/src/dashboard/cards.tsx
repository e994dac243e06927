// The main figures, as numbers.
import { bytes, count, countOf, percent, rough, timesSmaller } from "../format.ts";
import type { Usage } from "../service/wire.ts";
import type { Sums } from "./sums.ts";

export function Cards({ total, stored }: { total: Sums; stored: Usage | undefined }) {
  return (
    <div class="cards">
      <Card title="Outputs too large" value={percent(total.spilled, total.outputs)} note={`${count(total.spilled)} of ${countOf(total.outputs, "output")}`} />
      <Card title="Kept out of conversations" value={bytes(Math.max(0, total.bytes - total.kept))} note={`about ${rough(total.tokens)} tokens`} hint={`${count(total.tokens)} tokens`} />
      <Card title="Captures read back" value={percent(total.read, total.captures)} note={`${count(total.read)} of ${countOf(total.captures, "capture")}, ${countOf(total.reads, "read")}`} />
      <Card title="Run again after a notice" value={percent(total.bursts, total.spilled)} note={`${countOf(total.bursts, "burst")} of calls of the same tool`} />
      {stored && <Card title="Stored now" value={bytes(stored.stored_size)} note={noteOn(stored)} hint={limitsOf(stored)} />}
    </div>
  );
}

function noteOn({ captures, size, stored_size: stored }: Usage): string {
  const smaller = timesSmaller(size, stored);
  return `${countOf(captures, "capture")} of ${bytes(size)}${smaller && `, ${smaller}`}`;
}

function limitsOf({ max_captures: captures, max_stored_size: size }: Usage): string {
  return `At most ${captures ? count(captures) : "any number of"} captures and ${size ? bytes(size) : "any number of bytes"}`;
}

function Card({ title, value, note, hint }: { title: string; value: string; note: string; hint?: string }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <p class="quiet small" title={hint}>{note}</p>
    </section>
  );
}
