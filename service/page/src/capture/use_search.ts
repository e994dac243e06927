// A search as it goes on: what it found so far, and which match the reader is at.
import { useEffect, useRef, useState } from "preact/hooks";
import { setQuery } from "../route.ts";
import { countAll, type Found, searchedParts, searchOn, type Wanted } from "../viewer/search.ts";

export interface Searching {
  found: Found | undefined;
  /** Which of the matches the reader is at, counted from 0; -1 for none of them. */
  at: number;
  /** How much has been searched, from 0 to 1. */
  progress: number;
  problem: Error | undefined;
  next(step: 1 | -1): void;
}

/** Return the place in `numbers` of the last match that is not after `line`, -1 if there is none. */
function placeOf(numbers: number[], line: number): number {
  return numbers.findLastIndex((number) => number <= line);
}

/**
 * Search as the pattern in the address changes. `next` goes through the matches, and fetches more at their end. Who has
 * followed a link to the line `linked` stays there; who types goes to the first match.
 */
export function useSearch(reference: string, lines: number, wanted: Wanted, linked: number | undefined, goTo: (line: number) => void): Searching {
  const [found, setFound] = useState<Found>();
  const [at, setAt] = useState(-1);
  const [searched, setSearched] = useState(0);
  const [problem, setProblem] = useState<Error>();
  const isMoving = useRef(false);

  const begin = (known: Found) => {
    setFound(known);
    if (linked !== undefined) return setAt(placeOf(known.numbers, linked));
    if (known.numbers[0] === undefined) return;
    setAt(0);
    goTo(known.numbers[0]);
  };
  const goOn = ({ numbers, next }: Found) => {
    setFound((before) => before && (before.numbers.length < numbers.length ? { ...before, numbers, next } : before));
    if (linked !== undefined) setAt((before) => Math.max(before, placeOf(numbers, linked)));
  };
  const run = async (signal: AbortSignal) => {
    let isBegun = false;
    for await (const known of searchedParts(reference, wanted, signal)) {
      setSearched(known.searched);
      if (isBegun) goOn(known);
      else if (known.numbers.length > 0 || !known.next) {
        isBegun = true;
        begin(known.next ? known : { ...known, total: known.numbers.length });
        if (known.next) void countAll(reference, wanted, signal).then((total) => setFound((before) => before && { ...before, total }), failed(signal));
      }
    }
  };
  const failed = (signal: AbortSignal) => (error: Error) => signal.aborted || setProblem(error);
  useEffect(() => {
    setFound(undefined);
    setProblem(undefined);
    setSearched(0);
    setAt(-1);
    if (!wanted.pattern) return;
    const controller = new AbortController();
    run(controller.signal).catch(failed(controller.signal));
    return () => controller.abort();
  }, [reference, wanted.pattern, wanted.ignoreCase, wanted.isFixed, wanted.isInverted]);

  const move = async (step: 1 | -1) => {
    if (!found || found.numbers.length === 0 || isMoving.current) return;
    isMoving.current = true;
    try {
      const known = await reaching(reference, found, at + step);
      goOn(known);
      const position = bounded(known, at + step);
      const line = known.numbers[position]!;
      setAt(position);
      setQuery({ lines: line }, true);
      goTo(line);
    } finally {
      isMoving.current = false;
    }
  };
  return { found, at, progress: searched / Math.max(1, lines), problem, next: (step) => void move(step).catch(setProblem) };
}

/** Return what was found with the match at `position`, if there is one: more is fetched for it. */
async function reaching(reference: string, found: Found, position: number): Promise<Found> {
  let known = found;
  while (position >= known.numbers.length && known.next) known = await searchOn(reference, known);
  return known;
}

/** Go on at the other end behind the last match; before the first one too, if all of them are known. */
function bounded({ numbers, next }: Found, position: number): number {
  if (position < 0) return next ? 0 : numbers.length - 1;
  return position < numbers.length ? position : 0;
}
