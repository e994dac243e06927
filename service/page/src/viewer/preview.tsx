// What the model saw in the place of the whole output, to be read beside it.
import { get, pathOf, type Text } from "../api.ts";
import { useLoaded } from "../load.ts";
import { Trouble, Waiting } from "../parts/small.tsx";
import { Excerpt, type Shown } from "./excerpt.tsx";
import { lineCount } from "../format.ts";
import { type Range, seenCount } from "./seen.ts";

/** Lines that are fetched, at most: a preview is small. */
const MOST_LINES = 2000;

export function Preview({ reference, seen, onGo }: { reference: string; seen: Range[]; onGo(line: number): void }) {
  const found = useLoaded((signal) => linesOf(reference, seen, signal), [reference, JSON.stringify(seen)]);
  return (
    <section class="preview" aria-label="Seen by the model">
      <h2>Seen by the model: {lineCount(seenCount(seen))}</h2>
      {found.problem && <Trouble problem={found.problem} />}
      {found.answer ? <Excerpt label="Lines seen by the model" lines={found.answer} highlight={null} onGo={onGo} /> : !found.problem && <Waiting />}
    </section>
  );
}

async function linesOf(reference: string, seen: Range[], signal: AbortSignal): Promise<[number, Shown][]> {
  const lines: [number, Shown][] = [];
  for (const [start, end] of seen) {
    if (lines.length >= MOST_LINES) break;
    const asked = { start, end: Math.min(end, start + MOST_LINES), ansi: true };
    const { content, start_line } = await get<Text>(`${pathOf(reference)}/lines`, asked, signal);
    content.replace(/\n$/, "").split("\n").forEach((text, at) => lines.push([start_line + at, { text, isMatch: false }]));
  }
  return lines;
}
