// Search in a capture: the field, what it found, and whether only matches are shown. All of it is in the address.
import { useRef } from "preact/hooks";
import { count, sentence } from "../format.ts";
import { setQuery } from "../route.ts";
import type { Wanted } from "../viewer/search.ts";
import type { Searching } from "./use_search.ts";

const TYPING_MS = 250;
/** Lines around a match, where only matches are shown. */
export const CONTEXTS = [0, 2, 5, 10];

export function SearchField({ wanted, field }: { wanted: Wanted; field: preact.RefObject<HTMLInputElement | null> }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const typed = (pattern: string) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: pattern, lines: null }, true), TYPING_MS);
  };
  return (
    <span class="search" role="search">
      <input
        ref={field}
        type="text"
        enterKeyHint="search"
        aria-label="Search in this output"
        placeholder="Search all lines ( / )"
        spellcheck={false}
        autocomplete="off"
        defaultValue={wanted.pattern}
        onInput={(event) => typed(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
      <Toggle changes={{ case: wanted.ignoreCase ? "match" : "ignore" }} label="Aa" title="Match case. By itself if the pattern has a capital letter" isOn={!wanted.ignoreCase && !!wanted.pattern} />
      <Toggle changes={{ regex: wanted.isFixed ? 1 : null }} label=".*" title="The pattern is a regular expression (RE2)" isOn={!wanted.isFixed} />
      <Toggle changes={{ v: wanted.isInverted ? null : 1 }} label="not" title="Lines that do not match" isOn={wanted.isInverted} />
    </span>
  );
}

function Toggle({ changes, label, title, isOn }: { changes: Record<string, string | number | null>; label: string; title: string; isOn: boolean }) {
  return (
    <button type="button" class="small toggle" aria-pressed={isOn} aria-label={title.split(".")[0]} title={title} onClick={() => setQuery({ ...changes, lines: null }, true)}>
      {label}
    </button>
  );
}

/** Whether only matches are shown, and how many lines around each. */
export function OnlyMatches({ context }: { context: number | undefined }) {
  return (
    <label class="small">
      <span class="unseen">Show</span>
      <select value={String(context ?? "")} title="What is shown (&)" onChange={(event) => setQuery({ only: event.currentTarget.value })}>
        <option value="">all lines</option>
        {CONTEXTS.map((lines) => <option key={lines} value={String(lines)}>{lines ? `matches, ${lines} lines around` : "matches only"}</option>)}
      </select>
    </label>
  );
}

/** What the service says of a pattern, in words of this page. */
function readable(problem: Error): string {
  return sentence(problem.message.replace("fixed=true searches for", "without “.*” the page searches for"));
}

/** How many lines match, and the way to the next. */
export function SearchResult({ wanted, searching, canMove }: { wanted: Wanted; searching: Searching; canMove: boolean }) {
  const { found, at, progress, problem, next } = searching;
  if (!wanted.pattern) return null;
  if (problem) return <span class="search-problem" role="alert">{readable(problem)}</span>;
  if (!found) return <span class="result quiet small" role="status">searching…{progress > 0 && ` ${Math.floor(100 * progress)}%`}</span>;
  const total = found.total ?? found.numbers.length;
  return (
    <span class="result small">
      <span>
        {canMove && total > 0 && at >= 0 && <span class="quiet">{count(at + 1)} of </span>}
        <span role="status">{total ? `${count(total)}${found.total === undefined ? "+" : ""} ${total === 1 ? "line" : "lines"}` : "no line matches"}</span>
      </span>
      {canMove && (
        <span class="choice">
          <button type="button" class="small" disabled={!total} onClick={() => next(-1)} aria-label="Previous match" title="Previous match (N)">↑</button>
          <button type="button" class="small" disabled={!total} onClick={() => next(1)} aria-label="Next match" title="Next match (n)">↓</button>
        </span>
      )}
    </span>
  );
}
