// The lines of a capture, drawn only where the reader looks.
//
// A browser cannot scroll over more than some 10 million pixels. So the bar of a long capture is scaled: small movements
// go line by line, large ones in proportion.
import { useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Ref } from "preact";
import { count } from "../format.ts";
import { type Line, Lines } from "./lines.ts";
import { isIn, type Range } from "./seen.ts";
import { spans } from "./text.ts";

const ROW = 20;
const MAX_HEIGHT = 8_000_000;
const MAX_ROWS = 300;
const AHEAD = 30;
const MAP_PARTS = 250;
/** Movements of fewer screens than this go line by line. */
const NEAR_SCREENS = 3;

export interface ViewHandle {
  goTo(line: number): void;
  /** Go to a line unless it is in view. */
  reveal(line: number): void;
  move(lines: number): void;
  page(direction: 1 | -1): void;
}

interface Props {
  reference: string;
  total: number;
  /** Bytes of the output: a live one grows inside its last line too. */
  size: number;
  isWrapped: boolean;
  selected: [number, number] | null;
  /** Lines that the model saw. */
  seen: Range[];
  marks: { errors: number[]; warnings: number[]; matches: number[] };
  highlight: RegExp | null;
  onSelect(first: number, last: number): void;
  handle: Ref<ViewHandle>;
}

export function View({ reference, total, size, isWrapped, selected, seen, marks, highlight, onSelect, handle }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [rows, setRows] = useState(40);
  const [problem, setProblem] = useState<Error>();
  const [, redraw] = useState(0);
  const lines = useRef<Lines | undefined>(undefined);
  const lastScroll = useRef(0);
  const height = Math.min(total * ROW, MAX_HEIGHT);
  const furthest = Math.max(0, total - Math.floor(rows * 0.8));

  const isAtEnd = useRef(false);
  if (lines.current?.reference === reference && lines.current.size !== size) lines.current.grow(total, size);
  if (lines.current?.reference !== reference) {
    lines.current?.close();
    lines.current = new Lines(reference, total, size, (failed) => {
      setProblem(failed);
      redraw((before) => before + 1);
    });
  }
  useEffect(() => () => lines.current?.close(), [reference]);

  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setRows(Math.min(MAX_ROWS, Math.ceil(element.clientHeight / ROW) + 1)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const first = Math.floor(top);
  useEffect(() => {
    if (total) lines.current!.want(Math.max(1, first + 1 - AHEAD), Math.min(total, first + rows + AHEAD));
  }, [first, rows, reference, total, size]);

  /** Show the line at this position at the top, and put the bar where it belongs. */
  const show = (position: number) => {
    const wanted = Math.min(Math.max(0, position), furthest);
    const element = box.current!;
    const scroll = furthest ? (wanted / furthest) * (height - element.clientHeight) : 0;
    element.scrollTop = total * ROW <= MAX_HEIGHT ? wanted * ROW : scroll;
    lastScroll.current = element.scrollTop;
    setTop(wanted);
  };

  const scrolled = () => {
    const element = box.current!;
    const moved = element.scrollTop - lastScroll.current;
    lastScroll.current = element.scrollTop;
    if (moved === 0) return;
    if (total * ROW <= MAX_HEIGHT) setTop(Math.min(element.scrollTop / ROW, Math.max(0, total - 1)));
    else if (Math.abs(moved) < NEAR_SCREENS * element.clientHeight)
      setTop((before) => Math.min(Math.max(0, before + moved / ROW), furthest));
    else setTop((element.scrollTop / (height - element.clientHeight)) * furthest);
  };

  // Who looks at the end of a live capture goes on with it. Who has scrolled away stays there.
  useLayoutEffect(() => {
    if (isAtEnd.current && size > 0) show(furthest);
  }, [total, size]);
  isAtEnd.current = top >= furthest - 1;

  useImperativeHandle(handle, () => ({
    goTo: (line) => show(line - 1 - Math.floor(rows / 3)),
    reveal: (line) => {
      const end = top + Math.floor(box.current!.clientHeight / ROW);
      if (line - 1 < top || line > end) show(line - 1 - Math.floor(rows / 3));
    },
    move: (by) => show(top + by),
    page: (direction) => show(top + direction * (rows - 2)),
  }));

  const shown = Array.from({ length: Math.max(0, Math.min(rows, total - first)) }, (_, at) => first + at + 1);
  const digits = count(total).length;
  return (
    <div class="viewer">
      <div
        class={`lines ${isWrapped ? "wrapped" : ""}`}
        ref={box}
        onScroll={scrolled}
        tabIndex={0}
        role="region"
        aria-label={`Output, ${count(total)} lines`}
      >
        <div class="space" style={{ height: `${height}px` }}>
          <div class="window">
            {shown.map((number) => (
              <Row
                key={number}
                number={number}
                digits={digits}
                line={lines.current!.line(number)}
                isSelected={selected !== null && number >= selected[0] && number <= selected[1]}
                isMatch={marks.matches.includes(number)}
                isSeen={isIn(seen, number)}
                highlight={highlight}
                onSelect={(extend) => onSelect(extend && selected ? Math.min(selected[0], number) : number, extend && selected ? Math.max(selected[0], number) : number)}
                onReadOn={() => lines.current!.readOn(number).catch(setProblem)}
              />
            ))}
          </div>
        </div>
      </div>
      <Minimap total={total} marks={marks} seen={seen} top={top} rows={rows} onGo={(line) => show(line - 1 - Math.floor(rows / 3))} />
      {problem && (
        <p class="trouble" role="alert">
          {problem.message}{" "}
          <button type="button" class="small" onClick={() => (setProblem(undefined), lines.current!.want(first + 1, first + rows))}>
            Try again
          </button>
        </p>
      )}
    </div>
  );
}

interface RowProps {
  number: number;
  digits: number;
  line: Line | undefined;
  isSelected: boolean;
  isMatch: boolean;
  isSeen: boolean;
  highlight: RegExp | null;
  onSelect(extend: boolean): void;
  onReadOn(): void;
}

function Row({ number, digits, line, isSelected, isMatch, isSeen, highlight, onSelect, onReadOn }: RowProps) {
  return (
    <div class={`row ${isSelected ? "selected" : ""} ${isMatch ? "match" : ""} ${isSeen ? "seen" : ""}`} data-line={number}>
      <button
        type="button"
        class="number"
        style={{ width: `${digits + 1}ch` }}
        tabIndex={-1}
        aria-label={`Line ${number}${isSeen ? ", seen by the model" : ""}`}
        onClick={(event) => onSelect(event.shiftKey)}
      >
        {number}
      </button>
      <code dir="ltr">
        {line === undefined ? <span class="quiet">…</span> : <Content text={line.text} highlight={isMatch ? highlight : null} />}
        {line?.more !== undefined && (
          <button type="button" class="small" onClick={onReadOn}>
            read on in this line
          </button>
        )}
      </code>
    </div>
  );
}

function Content({ text, highlight }: { text: string; highlight: RegExp | null }) {
  return (
    <>
      {spans(text).map((span) => (
        <span class={span.styles.join(" ")}>{highlight ? marked(span.text, highlight) : span.text}</span>
      ))}
    </>
  );
}

function marked(text: string, pattern: RegExp) {
  const parts = [];
  let position = 0;
  for (const match of text.matchAll(pattern)) {
    if (!match[0]) continue;
    parts.push(text.slice(position, match.index), <mark>{match[0]}</mark>);
    position = match.index + match[0].length;
  }
  return [...parts, text.slice(position)];
}

interface MinimapProps {
  total: number;
  marks: Props["marks"];
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
function Minimap({ total, marks, seen, top, rows, onGo }: MinimapProps) {
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
