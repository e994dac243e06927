// A search as it goes on: what it found so far, and which match the reader is at.
import { useEffect, useRef, useState } from "preact/hooks";
import { setQuery } from "../route.ts";
import { countAll, type Found, search, searchOn, type Wanted } from "../viewer/search.ts";

/** Matches that are fetched by themselves, for the map and for a link to one of them. */
const MAPPED = 1000;

export interface Searching {
  found: Found | undefined;
  at: number;
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
  const [progress, setProgress] = useState(0);
  const [problem, setProblem] = useState<Error>();
  const isMoving = useRef(false);
  useEffect(() => {
    setFound(undefined);
    setProblem(undefined);
    setProgress(0);
    setAt(-1);
    if (!wanted.pattern) return;
    const controller = new AbortController();
    const { signal } = controller;
    const run = async () => {
      let known = await search(reference, wanted, signal);
      while (known.numbers.length === 0 && known.next) {
        setProgress(known.searched / Math.max(1, lines));
        known = await searchOn(reference, known, signal);
      }
      if (!known.next) known.total = known.numbers.length;
      setFound(known);
      if (linked !== undefined) setAt(placeOf(known.numbers, linked));
      else if (known.numbers[0] !== undefined) {
        setAt(0);
        goTo(known.numbers[0]);
      }
      const total = known.next ? countAll(reference, wanted, signal) : undefined;
      total?.then((all) => setFound((before) => before && { ...before, total: all }), failed);
      while (known.next && known.numbers.length < MAPPED) {
        known = await searchOn(reference, known, signal);
        const { numbers, next } = known;
        setFound((before) => before && (before.numbers.length < numbers.length ? { ...before, numbers, next } : before));
        if (linked !== undefined) setAt((before) => Math.max(before, placeOf(numbers, linked)));
      }
    };
    const failed = (error: Error) => signal.aborted || setProblem(error);
    run().catch(failed);
    return () => controller.abort();
  }, [reference, wanted.pattern, wanted.ignoreCase, wanted.isFixed, wanted.isInverted]);

  const move = async (step: 1 | -1) => {
    if (!found || found.numbers.length === 0 || isMoving.current) return;
    isMoving.current = true;
    try {
      const known = await reaching(reference, found, at + step);
      if (known !== found) setFound((before) => before && { ...before, numbers: known.numbers, next: known.next });
      const position = bounded(known, at + step);
      const line = known.numbers[position]!;
      setAt(position);
      setQuery({ lines: line }, true);
      goTo(line);
    } finally {
      isMoving.current = false;
    }
  };
  return { found, at, progress, problem, next: (step) => void move(step).catch(setProblem) };
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
