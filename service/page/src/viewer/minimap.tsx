// The whole output beside its lines: where errors, warnings, matches and what the model saw are.
import { useMemo, useRef } from "preact/hooks";
import { count } from "../format.ts";
import type { Range } from "./seen.ts";

const MAP_PARTS = 250;

export interface Marks {
  errors: number[];
  warnings: number[];
  matches: number[];
}

interface MinimapProps {
  total: number;
  marks: Marks;
  seen: Range[];
  top: number;
  rows: number;
  onGo(line: number): void;
}

/** Return the first line of each of so many parts of the output: what lies closer cannot be told apart. */
function apart(numbers: number[], total: number): number[] {
  const firsts = new Map<number, number>();
  for (const line of numbers) {
    const part = Math.floor((MAP_PARTS * (line - 1)) / Math.max(1, total));
    if (!firsts.has(part)) firsts.set(part, line);
  }
  return [...firsts.values()];
}

/** Where errors, warnings and matches are in the whole output. */
export function Minimap({ total, marks, seen, top, rows, onGo }: MinimapProps) {
  const at = (line: number) => `${(100 * (line - 1)) / Math.max(1, total)}%`;
  const go = useRef(onGo);
  go.current = onGo;
  const drawn = useMemo(
    () =>
      ([["warning", marks.warnings], ["error", marks.errors], ["match", marks.matches]] as const).flatMap(([kind, numbers]) =>
        apart(numbers, total).map((line) => (
          <button type="button" tabIndex={-1} class={kind} style={{ top: at(line) }} title={`${kind}, line ${count(line)}`} onClick={() => go.current(line)} />
        )),
      ),
    [marks.warnings, marks.errors, marks.matches, total],
  );
  return (
    <div class="minimap" aria-hidden="true">
      <div class="here" style={{ top: at(top + 1), height: `max(4px, ${(100 * rows) / Math.max(1, total)}%)` }} />
      {seen.map(([first, last]) => (
        <div class="seen" style={{ top: at(first), height: `max(2px, ${(100 * (last - first + 1)) / Math.max(1, total)}%)` }} />
      ))}
      {drawn}
    </div>
  );
}
