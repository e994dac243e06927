// Times that views are about: one that ends now and moves on, or a fixed one. Both are in the address, under names that
// the dashboard and the lists share, so that a link from one to the other keeps the time.
import type { Query } from "./service/api.ts";
import { now } from "./service/clock.ts";

export interface Span {
  since: string;
  until: string;
}

export const RANGES = [
  ["1h", "Hour"],
  ["24h", "Day"],
  ["7d", "Week"],
  ["30d", "Month"],
] as const;
export type Range = (typeof RANGES)[number][0];

const SECONDS: Record<Range, number> = { "1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400 };
const WORDS: Record<Range, string> = { "1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days" };

export function rangeOf(query: URLSearchParams): Range | null {
  return RANGES.find(([name]) => name === query.get("range"))?.[0] ?? null;
}

/** "the last 24 hours". */
export function wordsOf(range: Range): string {
  return `the last ${WORDS[range]}`;
}

/** When a time that ends now begins, at a whole minute. */
export function sinceOf(range: Range): string {
  return new Date(Math.floor(now() / 60_000) * 60_000 - SECONDS[range] * 1000).toISOString();
}

/** The fixed time in the address, if there is one. */
export function fixedSpan(query: URLSearchParams): Span | null {
  const [since, until] = ["since", "until"].map((name) => Date.parse(query.get(name) ?? ""));
  return since! < until! ? { since: new Date(since!).toISOString(), until: new Date(until!).toISOString() } : null;
}

/** The time of an address, for the address of another view. */
export function timeOf(query: URLSearchParams): Query {
  return { range: query.get("range"), since: query.get("since"), until: query.get("until") };
}
