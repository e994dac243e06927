// Marks of what matched in a line.

/** Where marks begin and end in a text. */
export type Marked = [start: number, end: number][];

/** Characters of a line that are looked at, and its marks, at most. */
const MAX_CHARACTERS = 20_000;
const MAX_MARKS = 500;

/** Return the marks of a pattern in a text. */
export function marksIn(text: string, pattern: RegExp): Marked {
  const found: Marked = [];
  for (const match of text.slice(0, MAX_CHARACTERS).matchAll(pattern)) {
    if (match[0]) found.push([match.index, match.index + match[0].length]);
    if (found.length === MAX_MARKS) break;
  }
  return found;
}

/** Return the pattern as the browser's own, null if only the service understands it. */
export function patternOf(source: string, ignoreCase: boolean): RegExp | null {
  try {
    return new RegExp(source, ignoreCase ? "giu" : "gu");
  } catch {
    return null;
  }
}

/** A part of a line that is drawn at once: of one style, and marked or not. */
export interface Piece<T> {
  span: T;
  text: string;
  isMarked: boolean;
}

/** Cut spans where marks begin and end. The marks count the characters of all spans together. */
export function pieces<T extends { text: string }>(spans: T[], marks: Marked): Piece<T>[] {
  const found: Piece<T>[] = [];
  let start = 0;
  let next = 0;
  for (const span of spans) {
    const end = start + span.text.length;
    let at = start;
    while (at < end) {
      while (marks[next] && marks[next]![1] <= at) next += 1;
      const [from, to] = marks[next] ?? [Infinity, Infinity];
      const isMarked = from <= at;
      const stop = Math.min(end, isMarked ? to : from);
      found.push({ span, text: span.text.slice(at - start, stop - start), isMarked });
      at = stop;
    }
    start = end;
  }
  return found;
}
