// Search in a capture, by the service's grep: the whole output is searched, not what the browser holds.
import { get, pathOf } from "../service/api.ts";
import type { Text } from "../service/wire.ts";

const PAGE = 200;
/** Matches that are fetched by themselves, for the map and for a link to one of them. */
const MAPPED = 1000;

export interface Wanted {
  pattern: string;
  ignoreCase: boolean;
  isFixed: boolean;
  isInverted: boolean;
}

export interface Found {
  /** The numbers of the matching lines that are known, from the first one on. */
  numbers: number[];
  /** How many lines match, once all were counted. */
  total?: number;
  /** The last line that was searched. */
  searched: number;
  next: Record<string, string> | null;
}

/** Whether capitals do not matter: as the reader says, else unless the pattern has one itself. */
export function ignoresCase(pattern: string, said: string | null): boolean {
  if (said === "match" || said === "ignore") return said === "ignore";
  return !/\p{Lu}/u.test(pattern.replace(/\\./g, ""));
}

export function query(wanted: Wanted) {
  return { pattern: wanted.pattern, ignore_case: wanted.ignoreCase, fixed: wanted.isFixed, invert: wanted.isInverted };
}

/** Yield what is found, more each time, until there are enough matches for the map; perhaps none at first. */
export async function* searchedParts(reference: string, wanted: Wanted, signal: AbortSignal): AsyncGenerator<Found> {
  const first = await get<Text>(`${pathOf(reference)}/grep`, { ...query(wanted), max_matches: PAGE }, signal);
  let known = foundIn(first, []);
  yield known;
  while (known.next && known.numbers.length < MAPPED) {
    known = await searchOn(reference, known, signal);
    yield known;
  }
}

/** Return what was found, and more of it. */
export async function searchOn(reference: string, found: Found, signal?: AbortSignal): Promise<Found> {
  return foundIn(await get<Text>(`${pathOf(reference)}/grep`, found.next ?? {}, signal), found.numbers);
}

function foundIn(text: Text, known: number[]): Found {
  const numbers = (text.matches ?? []).map((match) => match.line_number);
  return { numbers: [...known, ...numbers], searched: text.end_line, next: text.next };
}

/** Count all matching lines: the service goes on where its time for one answer was over. */
export async function countAll(reference: string, wanted: Wanted, signal: AbortSignal): Promise<number> {
  let total = 0;
  let asked: Record<string, string | number | boolean> | null = { ...query(wanted), count: true };
  while (asked) {
    const text: Text = await get<Text>(`${pathOf(reference)}/grep`, asked, signal);
    total += text.match_count ?? 0;
    asked = text.next;
  }
  return total;
}
