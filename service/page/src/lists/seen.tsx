// What the model saw of an output, in a list: some lines of it, and the way to all of it.
import { useLoaded } from "../load.ts";
import { Shown } from "../parts/states.tsx";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";
import { Excerpt } from "../viewer/excerpt.tsx";
import { linesOf } from "../viewer/preview.tsx";
import { type Range, seenRanges } from "../viewer/seen.ts";

/** Lines that stand for an output of which nobody says what the model saw. */
const FIRST_LINES = 10;

export function Seen({ entry }: { entry: Entry }) {
  const seen = seenRanges(entry);
  const ranges: Range[] = seen.length ? seen : [[1, Math.min(FIRST_LINES, entry.lines)]];
  const found = useLoaded((signal) => (entry.lines ? linesOf(entry.id, ranges, signal) : Promise.resolve([])), [entry.id]);
  return (
    <div class="seen-lines">
      {seen.length === 0 && <p class="quiet small">{entry.lines ? "Nobody noted that. The output begins so:" : "The output has no lines."}</p>}
      <Shown of={found}>
        {(lines) => (lines.length ? <Excerpt label="Lines seen by the model" lines={lines} total={entry.lines} highlighter={null} onGo={(line) => (location.hash = link(["captures", entry.id], { lines: line }))} /> : null)}
      </Shown>
    </div>
  );
}
