// The lines of a capture, drawn only where the reader looks.
//
// A browser cannot scroll over more than some 10 million pixels. So the bar of a long capture is scaled: small movements
// go line by line, large ones in proportion.
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Ref } from "preact";
import { count } from "../format.ts";
import { Lines } from "./lines.ts";
import { type Marks, Minimap } from "./minimap.tsx";
import { Row } from "./row.tsx";
import { isIn, type Range } from "./seen.ts";
import { advanced, atEnd } from "./wrapping.ts";

const ROW = 20;
const MAX_HEIGHT = 8_000_000;
const MAX_ROWS = 300;
const AHEAD = 30;
/** Wrapped lines that are drawn above the view, so that their heights are known. */
const ABOVE = 12;
/** Characters of a row on average: how long the bar of wrapped lines is. */
const WRAPPED_AT = 100;
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
  isTerminal: boolean;
  isWrapped: boolean;
  selected: [number, number] | null;
  /** Lines that the model saw. */
  seen: Range[];
  marks: Marks;
  highlight: RegExp | null;
  onSelect(first: number, last: number): void;
  handle: Ref<ViewHandle>;
}

export function View(props: Props) {
  const { reference, total, size, isTerminal, isWrapped, selected, seen, marks, highlight, onSelect, handle } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setDrawnTop] = useState(0);
  /** Where the reader is by now, though it may not be drawn yet. */
  const now = useRef(0);
  const setTop = (position: number) => {
    now.current = position;
    setDrawnTop(position);
  };
  const [rows, setRows] = useState(40);
  const [problem, setProblem] = useState<Error>();
  const [, redraw] = useState(0);
  const lines = useRef<Lines | undefined>(undefined);
  const lastScroll = useRef(0);
  const drawn = useRef<HTMLDivElement>(null);
  /** Whether the end of wrapped lines stays in view, whatever their heights turn out to be. */
  const wantsEnd = useRef(false);
  const isBarDue = useRef(false);
  const unscaled = isWrapped ? Math.max(total, size / WRAPPED_AT) * ROW : total * ROW;
  const height = Math.min(unscaled, MAX_HEIGHT);
  /** Whether the bar only shows where the reader is, and movements are counted apart from it. */
  const isApart = isWrapped || unscaled > MAX_HEIGHT;
  const furthest = isWrapped ? total - 0.001 : Math.max(0, total - Math.floor(rows * 0.8));

  const isAtEnd = useRef(false);
  if (lines.current?.reference === reference && lines.current.size !== size) lines.current.grow(total, size);
  if (lines.current?.reference !== reference) {
    lines.current?.close();
    lines.current = new Lines(reference, total, size, isTerminal, (failed) => {
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

  const first = Math.min(Math.floor(top), Math.max(0, total - 1));
  useEffect(() => {
    if (total) lines.current!.want(Math.max(1, first + 1 - AHEAD), Math.min(total, first + rows + AHEAD));
  }, [first, rows, reference, total, size]);

  const above = isWrapped ? Math.min(first, ABOVE) : 0;
  const heightOf = (line: number) => (drawn.current?.children[line - first + above] as HTMLElement | undefined)?.offsetHeight || ROW;

  const setBar = (position: number) => {
    const element = box.current!;
    const scaled = furthest ? (position / furthest) * (element.scrollHeight - element.clientHeight) : 0;
    element.scrollTop = isApart ? scaled : position * ROW;
    lastScroll.current = element.scrollTop;
  };

  /** Show the line at this position at the top, and put the bar where it belongs. */
  const show = (position: number) => {
    const wanted = Math.min(Math.max(0, position), furthest);
    setBar(wanted);
    setTop(wanted);
  };
  const byPixels = (from: number, pixels: number) => {
    if (pixels < 0) wantsEnd.current = false;
    return isWrapped ? advanced(from, pixels, heightOf, total) : from + pixels / ROW;
  };

  const scrolled = () => {
    const element = box.current!;
    const moved = element.scrollTop - lastScroll.current;
    lastScroll.current = element.scrollTop;
    if (moved === 0) return;
    if (!isApart) setTop(Math.min(element.scrollTop / ROW, Math.max(0, total - 1)));
    else if (Math.abs(moved) < NEAR_SCREENS * element.clientHeight) setTop(Math.min(Math.max(0, byPixels(now.current, moved)), furthest));
    else {
      const part = element.scrollTop / (element.scrollHeight - element.clientHeight);
      wantsEnd.current = isWrapped && part > 0.999;
      setTop(part * furthest);
    }
  };

  // The wheel moves over lines, not over the bar: one of its steps may be thousands of lines there.
  const turned = useRef((_event: WheelEvent) => undefined as void);
  turned.current = (event) => {
    if (!isApart || event.ctrlKey || event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW : 1);
    setTop(Math.min(Math.max(0, byPixels(now.current, pixels)), furthest));
    isBarDue.current = true;  // once a frame: the browser computes its layout for that
  };
  const settled = useRef(() => undefined as void);
  settled.current = () => isApart && setBar(now.current);
  useEffect(() => {
    const element = box.current!;
    const wheel = (event: WheelEvent) => turned.current(event);
    const end = () => settled.current();
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("scrollend", end);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("scrollend", end);
    };
  }, []);

  useLayoutEffect(() => {
    if (isBarDue.current) setBar(top);
    isBarDue.current = false;
    if (!isWrapped) return;
    const end = wantsEnd.current && total ? atEnd(total, box.current!.clientHeight, heightOf) : top;
    if (Math.abs(end - top) * heightOf(first) >= 1) return show(end);
    let offset = (top - first) * heightOf(first);
    for (let line = first - above; line < first; line += 1) offset += heightOf(line);
    drawn.current!.style.transform = `translateY(${-offset}px)`;
  });
  useLayoutEffect(() => {
    if (!isWrapped) drawn.current!.style.transform = "";
  }, [isWrapped]);

  useLayoutEffect(() => setBar(Math.min(now.current, furthest)), [isWrapped]);

  // Who looks at the end of a live capture goes on with it. Who has scrolled away stays there.
  useLayoutEffect(() => {
    if (isAtEnd.current && !isWrapped && size > 0) show(furthest);
  }, [total, size]);
  isAtEnd.current = top >= furthest - 1;

  const place = (line: number) => {
    wantsEnd.current = isWrapped && line >= total;
    show(isWrapped ? line - 1 : line - 1 - Math.floor(rows / 3));
  };
  useImperativeHandle(handle, () => ({
    goTo: place,
    reveal: (line) => {
      const end = top + Math.floor(box.current!.clientHeight / ROW);
      if (line - 1 < top || line > end) place(line);
    },
    move: (by) => show(byPixels(now.current, by * ROW)),
    page: (direction) => show(byPixels(now.current, direction * (rows - 2) * ROW)),
  }));

  const shown = Array.from({ length: Math.max(0, Math.min(rows + above, total - first + above)) }, (_, at) => first - above + at + 1);
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
          <div class="window" style={{ height: isWrapped ? `${(rows - 1) * ROW}px` : "auto" }}><div ref={drawn}>
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
          </div></div>
        </div>
      </div>
      <Minimap total={total} marks={marks} seen={seen} top={top} rows={rows} onGo={place} />
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

