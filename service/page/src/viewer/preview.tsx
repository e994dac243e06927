// What the model saw in the place of the whole output, to be read beside it.
import { lineCount } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Shown as ShownAnswer } from "../parts/states.tsx";
import { get, pathOf } from "../service/api.ts";
import type { Text } from "../service/wire.ts";
import { Excerpt, type Shown } from "./excerpt.tsx";
import { type Range, seenCount } from "./seen.ts";

/** Lines that are fetched, at most: a preview is small. */
const MOST_LINES = 2000;

interface PreviewProps {
  reference: string;
  /** Lines of the whole output. */
  total: number;
  seen: Range[];
  onGo(line: number): void;
}

export function Preview({ reference, total, seen, onGo }: PreviewProps) {
  const found = useLoaded((signal) => linesOf(reference, seen, signal), [reference, JSON.stringify(seen)]);
  return (
    <section class="preview" aria-label="Seen by the model">
      <h2>Seen by the model: {lineCount(seenCount(seen))}</h2>
      <ShownAnswer of={found}>{(lines) => <Excerpt label="Lines seen by the model" lines={lines} total={total} highlighter={null} onGo={onGo} />}</ShownAnswer>
    </section>
  );
}

/** Return lines of some ranges. */
export async function linesOf(reference: string, ranges: Range[], signal: AbortSignal): Promise<[number, Shown][]> {
  const lines: [number, Shown][] = [];
  for (const [start, end] of ranges) {
    if (lines.length >= MOST_LINES) break;
    const asked = { start, end: Math.min(end, start + MOST_LINES), ansi: true };
    const { content, start_line } = await get<Text>(`${pathOf(reference)}/lines`, asked, signal);
    content.replace(/\n$/, "").split("\n").forEach((text, at) => lines.push([start_line + at, { text, isMatch: false }]));
  }
  return lines;
}
