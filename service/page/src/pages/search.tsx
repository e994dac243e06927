// Search in a capture: the field, what it found, and whether only matches are shown. All of it is in the address.
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "../format.ts";
import { setQuery } from "../route.ts";
import { countAll, type Found, search, searchOn, type Wanted } from "../viewer/search.ts";

const TYPING_MS = 250;
/** Lines around a match, where only matches are shown. */
export const CONTEXTS = [0, 2, 5, 10];

/** Return the place in `numbers` from which the next match is the first one after `line`. */
function before(numbers: number[], line: number): number {
  const after = numbers.findIndex((number) => number > line);
  return (after < 0 ? numbers.length : after) - 1;
}

/**
 * Search as the pattern in the address changes. `next` goes through the matches, and fetches more at their end. Who has
 * followed a link to the line `linked` stays there; who types goes to the first match.
 */
export function useSearch(reference: string, wanted: Wanted, linked: number | undefined, goTo: (line: number) => void) {
  const [found, setFound] = useState<Found>();
  const [problem, setProblem] = useState<Error>();
  const at = useRef(-1);
  useEffect(() => {
    setFound(undefined);
    setProblem(undefined);
    at.current = -1;
    if (!wanted.pattern) return;
    const controller = new AbortController();
    const failed = (error: Error) => controller.signal.aborted || setProblem(error);
    search(reference, wanted, controller.signal).then((first) => {
      setFound(first);
      if (linked !== undefined) at.current = before(first.numbers, linked);
      else if (first.numbers[0] !== undefined) {
        at.current = 0;
        goTo(first.numbers[0]);
      }
      if (!first.next) setFound({ ...first, total: first.numbers.length });
      else
        countAll(reference, wanted, controller.signal).then(
          (total) => setFound((before) => before && { ...before, total }),
          failed,
        );
    }, failed);
    return () => controller.abort();
  }, [reference, wanted.pattern, wanted.ignoreCase, wanted.isFixed, wanted.isInverted]);

  const next = (step: 1 | -1) => void move(step).catch(setProblem);
  const move = async (step: 1 | -1) => {
    if (!found || found.numbers.length === 0) return;
    let known = found;
    let position = at.current + step;
    if (position >= known.numbers.length && known.next) {
      const more = await searchOn(reference, known);
      known = { ...more, ...(found.total === undefined ? {} : { total: found.total }) };
      setFound(known);
    }
    if (position < 0) position = known.numbers.length - 1;
    if (position >= known.numbers.length) position = 0;
    at.current = position;
    const line = known.numbers[position]!;
    setQuery({ lines: line }, true);
    goTo(line);
  };
  return { found, problem, next };
}

export function SearchField({ wanted, field }: { wanted: Wanted; field: preact.RefObject<HTMLInputElement | null> }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  return (
    <span class="search" role="search">
      <input
        ref={field}
        type="text"
        enterKeyHint="search"
        aria-label="Search in this output"
        placeholder="Search ( / )"
        defaultValue={wanted.pattern}
        onInput={(event) => {
          const pattern = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setQuery({ q: pattern, lines: null }, true), TYPING_MS);
        }}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
      <Toggle name="i" label="i" title="Ignore case" isOn={wanted.ignoreCase} />
      <Toggle name="regex" label=".*" title="The pattern is a regular expression (RE2)" isOn={!wanted.isFixed} />
      <Toggle name="v" label="¬" title="Lines that do not match" isOn={wanted.isInverted} />
    </span>
  );
}

function Toggle({ name, label, title, isOn }: { name: string; label: string; title: string; isOn: boolean }) {
  return (
    <button type="button" class="small toggle" aria-pressed={isOn} aria-label={title} title={title} onClick={() => setQuery({ [name]: isOn ? null : 1, lines: null }, true)}>
      {label}
    </button>
  );
}

/** Whether only matches are shown, and how many lines around each. */
export function OnlyMatches({ context }: { context: number | undefined }) {
  return (
    <label class="small">
      Show{" "}
      <select value={String(context ?? "")} onChange={(event) => setQuery({ only: event.currentTarget.value })}>
        <option value="">all lines</option>
        {CONTEXTS.map((lines) => <option value={String(lines)}>{lines ? `matches, ${lines} lines around` : "matches only"}</option>)}
      </select>
    </label>
  );
}

export function SearchResult(props: { wanted: Wanted; found: Found | undefined; problem: Error | undefined; onNext: ((step: 1 | -1) => void) | undefined }) {
  const { wanted, found, problem, onNext } = props;
  if (!wanted.pattern) return null;
  if (problem) return <span class="trouble" role="alert">{problem.message}</span>;
  if (!found) return <span class="quiet" role="status">searching…</span>;
  const total = found.total ?? found.numbers.length;
  return (
    <span class="small">
      <span role="status">{total ? `${count(total)}${found.total === undefined ? " or more" : ""} ${total === 1 ? "line" : "lines"}` : "no line matches"}</span>{" "}
      {onNext && <button type="button" class="small" disabled={!total} onClick={() => onNext(-1)} aria-label="Previous match (N)">↑</button>}
      {onNext && <button type="button" class="small" disabled={!total} onClick={() => onNext(1)} aria-label="Next match (n)">↓</button>}
    </span>
  );
}
