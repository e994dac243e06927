// Search in a capture, by the service's grep: the whole output is searched, not what the browser holds.
import { get, pathOf, type Text } from "../api.ts";

const PAGE = 200;

export interface Found {
  numbers: number[];
  /** How many lines match, once all were counted. */
  total?: number;
  next: Record<string, string> | null;
}

export interface Wanted {
  pattern: string;
  ignoreCase: boolean;
  isFixed: boolean;
  isInverted: boolean;
}

export function query(wanted: Wanted) {
  return { pattern: wanted.pattern, ignore_case: wanted.ignoreCase, fixed: wanted.isFixed, invert: wanted.isInverted };
}

/** Return the first matching lines. */
export async function search(reference: string, wanted: Wanted, signal: AbortSignal): Promise<Found> {
  const text = await get<Text>(`${pathOf(reference)}/grep`, { ...query(wanted), max_matches: PAGE }, signal);
  return { numbers: numbersOf(text), next: text.next };
}

/** Return what was found, and more of it. */
export async function searchOn(reference: string, found: Found): Promise<Found> {
  const text = await get<Text>(`${pathOf(reference)}/grep`, found.next ?? {});
  return { ...found, numbers: [...found.numbers, ...numbersOf(text)], next: text.next };
}

/** Count all matching lines: the service goes on where its time for one answer was over. */
export async function countAll(reference: string, wanted: Wanted, signal: AbortSignal): Promise<number> {
  let next: Record<string, string> | null = null;
  let total = 0;
  do {
    const asked: Record<string, unknown> = next ?? { ...query(wanted), count: true };
    const text: Text = await get<Text>(`${pathOf(reference)}/grep`, asked as never, signal);
    total += text.match_count ?? 0;
    next = text.next;
  } while (next);
  return total;
}

function numbersOf(text: Text): number[] {
  return (text.matches ?? []).map((match) => match.line_number);
}

/** The pattern as the browser's own, to mark what matched; null if only the service understands it. */
export function patternOf(wanted: Wanted): RegExp | null {
  if (wanted.isInverted || !wanted.pattern) return null;
  const source = wanted.isFixed ? wanted.pattern.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") : wanted.pattern;
  try {
    return new RegExp(source, wanted.ignoreCase ? "giu" : "gu");
  } catch {
    return null;
  }
}
