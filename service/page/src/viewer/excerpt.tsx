// Some lines of an output with what lies between them left out, as `grep -C` shows them. A click on a number goes to the
// line in the whole output.
import { Fragment, type ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { lineCount } from "../format.ts";
import type { Highlighter } from "./highlighter.ts";
import { Row } from "./row.tsx";
import { revealMark } from "./sideways.ts";

export interface Shown {
  text: string;
  isMatch: boolean;
}

interface ExcerptProps {
  label: string;
  /** Lines with their numbers, in order. */
  lines: [number, Shown][];
  /** Lines of the whole output. */
  total: number;
  highlighter: Highlighter | null;
  onGo(line: number): void;
  /** What comes after the lines. */
  children?: ComponentChildren;
}

export function Excerpt({ label, lines, total, highlighter, onGo, children }: ExcerptProps) {
  const digits = String(total).length;
  const box = useRef<HTMLDivElement>(null);
  const sought = useRef<number | undefined>(undefined);
  const first = lines.find(([, line]) => line.isMatch)?.[0];
  useLayoutEffect(() => {
    sought.current = first;
  }, [first, highlighter]);
  useLayoutEffect(() => {
    if (sought.current !== undefined && revealMark(box.current!, sought.current)) sought.current = undefined;
  });
  return (
    <div class="viewer">
      <div class="lines only" ref={box} tabIndex={0} role="region" aria-label={label}>
        {lines.map(([number, line], at) => (
          <Fragment key={number}>
            <Gap lines={at === 0 ? number - 1 : number - lines[at - 1]![0] - 1} />
            <Row number={number} digits={digits} line={line} isSelected={false} isMatch={line.isMatch} isSeen={false} highlighter={highlighter} onSelect={() => onGo(number)} />
          </Fragment>
        ))}
        {children}
      </div>
    </div>
  );
}

function Gap({ lines }: { lines: number }) {
  return lines > 0 ? <div class="gap">… {lineCount(lines)}</div> : null;
}
