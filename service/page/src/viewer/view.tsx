// The lines of a capture, drawn only where the reader looks.
import { Component, type Ref, type RefObject } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";
import { count } from "../format.ts";
import { useRetries } from "../load.ts";
import { Trouble } from "../parts/states.tsx";
import type { Highlighter } from "./highlighter.ts";
import { type Line, Lines } from "./lines.ts";
import { type Marks, Minimap } from "./minimap.tsx";
import { Place, ROW, type Shape } from "./place.ts";
import { Row } from "./row.tsx";
import { isIn, type Range } from "./seen.ts";

const MAX_ROWS = 300;
/** Lines beyond the view that are fetched. */
const AHEAD = 5;

export interface ViewHandle {
  goTo(line: number): void;
  /** Go to a line, and sideways to what matches in it. */
  goToMatch(line: number): void;
  /** Go to the first of some lines unless all of them are in view. */
  reveal(first: number, last: number): void;
  move(lines: number): void;
  page(direction: 1 | -1): void;
}

/** Which output, and as far as it goes by now. */
interface Source {
  reference: string;
  total: number;
  /** Bytes of the output: a live one grows inside its last line too. */
  size: number;
  columns: number | undefined;
}

/** What is marked in the lines. */
interface Marked {
  selected: Range | null;
  /** Lines that the model saw. */
  seen: Range[];
  marks: Marks;
  highlighter: Highlighter | null;
}

interface Props extends Source, Marked {
  isWrapped: boolean;
  /** Whether the end is shown first: that of a live output, which is followed then. */
  startsAtEnd: boolean;
  onSelect(first: number, last: number): void;
  /** Whether the reader looks at the end, whenever the view is drawn. */
  onEnd(isAtEnd: boolean): void;
  onProblem(problem: Error): void;
  handle: Ref<ViewHandle>;
}

export function View(props: Props) {
  const { total, size, isWrapped, marks, seen, handle, onEnd, onProblem } = props;
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<HTMLDivElement>(null);
  const rows = useRowsOf(box);
  const { lines, problem, retry } = useLines(props);
  const { place, top } = usePlace(box, drawn, { total, size, rows, isWrapped }, props.startsAtEnd);
  const { first, above } = place;
  const again = () => {
    retry();
    want(lines, first, rows);
  };
  useEffect(() => want(lines, first, rows), [first, rows, lines, total, size]);
  useEffect(() => onEnd(place.isAtEnd));
  useEffect(() => {
    if (problem) onProblem(problem);
  }, [problem]);
  useRetries(problem, again);
  useImperativeHandle(handle, () => place);
  const shown = numbersOf(first - above + 1, Math.min(total, first + rows));
  return (
    <div class="viewer">
      <div
        class={`lines ${isWrapped ? "wrapped" : ""}`}
        ref={box}
        onScroll={() => place.scrolled()}
        tabIndex={0}
        role="region"
        aria-label={`Output, ${count(total)} lines`}
      >
        <div class="space" style={{ height: `${place.height}px` }}>
          <div class="window" style={{ height: isWrapped ? `${(rows - 1) * ROW}px` : "auto" }}>
            <div ref={drawn}>{shown.map((number) => <Drawn key={number} number={number} line={lines.line(number)} lines={lines} view={props} />)}</div>
          </div>
        </div>
      </div>
      <Minimap total={total} marks={marks} seen={seen} top={top} rows={rows} onGo={(line) => place.goTo(line)} />
      {problem && <Trouble problem={problem} onRetry={again} />}
    </div>
  );
}

function numbersOf(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
}

function want(lines: Lines, first: number, rows: number): void {
  if (lines.total) lines.want(Math.max(1, first + 1 - AHEAD), Math.min(lines.total, first + rows + AHEAD));
}

interface DrawnProps {
  number: number;
  line: Line | undefined;
  lines: Lines;
  view: Props;
}

/** One line with its marks. Who scrolls moves it: it is made anew only if it has changed, or what is marked. */
class Drawn extends Component<DrawnProps> {
  override shouldComponentUpdate({ line, view }: DrawnProps): boolean {
    return line !== this.props.line || view !== this.props.view;
  }

  private select(isExtending: boolean): void {
    const { number, view } = this.props;
    const [first, last] = (isExtending && view.selected) || [number, number];
    view.onSelect(Math.min(first, number), Math.max(last, number));
  }

  override render({ number, line, lines, view }: DrawnProps) {
    return (
      <Row
        number={number}
        digits={String(view.total).length}
        line={line}
        isSelected={view.selected !== null && isIn([view.selected], number)}
        isMatch={view.marks.matches.includes(number)}
        isSeen={isIn(view.seen, number)}
        highlighter={view.highlighter}
        onSelect={(isExtending) => this.select(isExtending)}
        onReadOn={() => void lines.readOn(number)}
        onRestart={() => lines.restart(number)}
      />
    );
  }
}

/** Return how many rows fit into the box, with one that is cut. */
function useRowsOf(box: RefObject<HTMLDivElement | null>): number {
  const [rows, setRows] = useState(40);
  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setRows(Math.min(MAX_ROWS, Math.ceil(element.clientHeight / ROW) + 1)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return rows;
}

/** Return the lines of an output, which draw the view anew when they come, and the problem with the last ones. */
function useLines({ reference, total, size, columns }: Source) {
  const [problem, setProblem] = useState<Error>();
  const [, redraw] = useState(0);
  const kept = useRef<Lines | undefined>(undefined);
  if (kept.current?.reference !== reference) {
    kept.current?.close();
    kept.current = new Lines(reference, total, size, columns, (failed) => {
      setProblem(failed);
      redraw((before) => before + 1);
    });
  } else if (kept.current.size !== size) kept.current.grow(total, size);
  useEffect(() => () => kept.current?.close(), [reference]);
  return { lines: kept.current, problem, retry: () => setProblem(undefined) };
}

/** Return where the reader is, and the position that is drawn. */
function usePlace(box: RefObject<HTMLDivElement | null>, drawn: RefObject<HTMLDivElement | null>, shape: Shape, startsAtEnd: boolean) {
  const [top, setTop] = useState(0);
  const kept = useRef<Place | undefined>(undefined);
  const place = (kept.current ??= new Place(setTop, startsAtEnd));
  place.update(shape, top);
  useLayoutEffect(() => {
    [place.box, place.drawn] = [box.current!, drawn.current!];
    const wheel = (event: WheelEvent) => place.turned(event);
    const end = () => place.settled();
    place.box.addEventListener("wheel", wheel, { passive: false });
    place.box.addEventListener("scrollend", end);
    return () => {
      place.box.removeEventListener("wheel", wheel);
      place.box.removeEventListener("scrollend", end);
    };
  }, []);
  useLayoutEffect(() => place.wrapped(), [shape.isWrapped]);
  useLayoutEffect(() => place.grown(), [shape.total, shape.size, shape.rows]);
  useLayoutEffect(() => place.placed());
  return { place, top };
}
