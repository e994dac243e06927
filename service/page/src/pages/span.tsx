// A time that does not move on: from the address, from two fields, or dragged over in a chart.
import { setQuery } from "../route.ts";

export interface Span {
  since: string;
  until: string;
}

/** The time in the address that does not move on, if there is one. */
export function fixedSpan(query: URLSearchParams): Span | null {
  const [since, until] = [query.get("since"), query.get("until")].map((text) => Date.parse(text ?? ""));
  return since! < until! ? { since: new Date(since!).toISOString(), until: new Date(until!).toISOString() } : null;
}

/** Fields for a time that does not move on. Dragging over a chart sets it too. */
export function FixedSpan({ span }: { span: Span | null }) {
  const local = (time: string | undefined) => {
    if (!time) return "";
    const at = new Date(time);
    return new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  };
  return (
    <details class="span" open={span !== null} key={span?.since}>
      <summary class="small">from … to …</summary>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          const [since, until] = ["since", "until"].map((name) => new Date(String(given.get(name))));
          if (since! < until!) setQuery({ since: since!.toISOString(), until: until!.toISOString() });
        }}
      >
        <label class="small">From <input type="datetime-local" name="since" required defaultValue={local(span?.since)} /></label>
        <label class="small">To <input type="datetime-local" name="until" required defaultValue={local(span?.until)} /></label>
        <button type="submit" class="small">Show</button>
      </form>
    </details>
  );
}

/** Show the time that somebody has dragged over, in whole minutes. */
export function zoom(since: number, until: number): void {
  const minute = (seconds: number) => new Date(seconds * 1000).toISOString();
  const first = Math.floor(since / 60) * 60;
  setQuery({ since: minute(first), until: minute(Math.max(first + 60, Math.ceil(until / 60) * 60)) });
}
