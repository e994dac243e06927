// A time that does not move on: from two fields, or dragged over in a chart.
import { minute } from "../format.ts";
import type { Range, Span } from "../ranges.ts";
import { sinceOf } from "../ranges.ts";
import { setQuery } from "../route.ts";
import { now } from "../service/clock.ts";

/** Fields for a time that does not move on. */
export function FixedSpan({ span, range }: { span: Span | null; range: Range }) {
  const shown = span ?? { since: sinceOf(range), until: new Date(now()).toISOString() };
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const [since, until] = ["since", "until"].map((name) => new Date(String(given.get(name))));
    if (since! < until!) setQuery({ since: since!.toISOString(), until: until!.toISOString() });
  };
  return (
    <details class="span" key={span?.since}>
      <summary class={`small ${span ? "chosen" : ""}`}>{span ? `${minute(span.since)} – ${minute(span.until)}` : "From … to …"}</summary>
      <form class="tools" onSubmit={submitted}>
        <label class="small">From <input type="datetime-local" name="since" required defaultValue={local(shown.since)} /></label>
        <label class="small">To <input type="datetime-local" name="until" required defaultValue={local(shown.until)} /></label>
        <button type="submit" class="small">Show</button>
      </form>
    </details>
  );
}

/** An instant in the reader's zone, as a field for it has it. */
function local(time: string): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Show the time that somebody has dragged over, in whole minutes. */
export function zoom(since: number, until: number): void {
  const instant = (seconds: number) => new Date(seconds * 1000).toISOString();
  const first = Math.floor(since / 60) * 60;
  setQuery({ since: instant(first), until: instant(Math.max(first + 60, Math.ceil(until / 60) * 60)) });
}
