// Some lines of an output with what lies between them left out, as `grep -C` shows them. A click on a number goes to the
// line in the whole output.
import type { ComponentChildren } from "preact";
import { count, lineCount } from "../format.ts";
import { Row } from "./row.tsx";

export interface Shown {
  text: string;
  isMatch: boolean;
}

interface Props {
  label: string;
  /** Lines with their numbers, in order. */
  lines: [number, Shown][];
  highlight: RegExp | null;
  onGo(line: number): void;
  /** What comes after the lines. */
  children?: ComponentChildren;
}

export function Excerpt({ label, lines, highlight, onGo, children }: Props) {
  const digits = count(lines.at(-1)?.[0] ?? 0).length;
  return (
    <div class="viewer">
      <div class="lines only" tabIndex={0} role="region" aria-label={label}>
        {lines.map(([number, line], at) => (
          <>
            <Gap lines={at === 0 ? 0 : number - lines[at - 1]![0] - 1} />
            <Row
              key={number}
              number={number}
              digits={digits}
              line={line}
              isSelected={false}
              isMatch={line.isMatch}
              isSeen={false}
              highlight={line.isMatch ? highlight : null}
              onSelect={() => onGo(number)}
              onReadOn={() => undefined}
            />
          </>
        ))}
        {children}
      </div>
    </div>
  );
}

function Gap({ lines }: { lines: number }) {
  return lines > 0 ? <div class="gap">… {lineCount(lines)}</div> : null;
}
