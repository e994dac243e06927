// Which lines the model saw in the place of the whole output, as the guard's label tells them: `1-18,433,990-1002`.
import type { Entry } from "../service/wire.ts";

export const SEEN_LABEL = "overspill.seen-lines";
const MAX_RANGES = 100;
const RANGE = /^(\d{1,15})(?:-(\d{1,15}))?$/;

export type Range = [first: number, last: number];

/** Return the ranges, none if the label is missing or is no such list. */
export function seenRanges(entry: Entry): Range[] {
  const parts = (entry.labels[SEEN_LABEL] ?? "").split(",", MAX_RANGES).map((part) => RANGE.exec(part));
  const ranges = parts.map((found): Range => [Number(found?.[1]), Number(found?.[2] ?? found?.[1])]);
  return ranges.every(([first, last]) => first >= 1 && first <= last && last <= entry.lines) ? ranges : [];
}

export function isIn(ranges: Range[], line: number): boolean {
  return ranges.some(([first, last]) => first <= line && line <= last);
}

export function seenCount(ranges: Range[]): number {
  return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}
