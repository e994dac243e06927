// The output of a capture: as lines with what leads through them, or as a tree or a table.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { Choice } from "../parts/boxes.tsx";
import { setQuery, useRoute } from "../route.ts";
import { get, pathOf } from "../service/api.ts";
import type { Entry, Summary } from "../service/wire.ts";
import { useHighlighter } from "../viewer/highlighter.ts";
import type { Marks } from "../viewer/minimap.tsx";
import { seenRanges } from "../viewer/seen.ts";
import type { ViewHandle } from "../viewer/view.tsx";
import { asked } from "./asked.ts";
import { useLineKeys } from "./line_keys.ts";
import { isOneLine, isStructured, kindOf, Structured } from "./structured.tsx";
import { Tools } from "./tools.tsx";
import { useSearch } from "./use_search.ts";
import { Views } from "./views.tsx";

/** Errors, and warnings, that can be walked through and are on the map. */
const MARKS = 1000;

interface OutputProps {
  entry: Entry;
  /** Its lines cannot be read any more. */
  onGone(): void;
}

export function Output(props: OutputProps) {
  const { entry } = props;
  const isData = asked(useRoute().query).isData ?? isOneLine(entry);
  const mayBeData = isStructured(entry);
  useKeys({ t: () => mayBeData && setQuery({ as: isData ? "lines" : "data" }, true) });
  if (entry.size === 0)
    return (
      <section class="output empty" aria-label="Output">
        <p role="status">{entry.state === "live" ? "Nothing yet. This page shows what comes." : "This output is empty."}</p>
      </section>
    );
  return (
    <section class="output" aria-label="Output">
      {mayBeData && <Choice label="Show it as" options={[["lines", "Lines"], ["data", kindOf(entry)]]} chosen={isData ? "data" : "lines"} onChoose={(as) => setQuery({ as }, true)} />}
      {mayBeData && isData ? <Structured entry={entry} /> : <Lines {...props} />}
    </section>
  );
}

function Lines({ entry, onGone }: OutputProps) {
  const view = asked(useRoute().query);
  const { wanted, selected } = view;
  const handle = useRef<ViewHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [isWrapped, setWrapped] = useState(false);
  const [isAtEnd, setAtEnd] = useState(false);
  const summary = useSummary(entry);
  const seen = useMemo(() => seenRanges(entry), [entry]);
  const go = (line: number) => handle.current?.goTo(line);
  const select = (line: number) => {
    setQuery({ lines: line }, true);
    go(line);
  };
  const walk = (numbers: number[], step: 1 | -1 = 1) => {
    const line = nextOf(numbers, selected?.[0] ?? 0, step);
    if (line !== undefined) select(line);
  };
  const searching = useSearch(entry.id, entry.lines, wanted, selected?.[0], (line) => handle.current?.goToMatch(line));
  const numbers = searching.found?.numbers;
  const marks = useMemo(() => marksOf(summary, numbers), [summary, numbers]);
  const highlighter = useHighlighter(wanted);
  const wrap = () => setWrapped(!isWrapped);
  useEffect(() => {
    if (selected) handle.current?.reveal(...selected);
  }, [entry.id, selected?.[0]]);
  useLineKeys({ entry, view, handle, field, onNext: searching.next, onWalk: (step) => walk(marks.errors, step), onWrap: wrap, canBeBeside: seen.length > 0 });
  return (
    <>
      <Tools {...{ entry, view, field, searching, summary, seen, isWrapped, isAtEnd }} onWalk={walk} onWrap={wrap} onGo={go} />
      <Views {...{ entry, view, handle, seen, marks, highlighter, isWrapped, onGone }} onSelect={select} onGo={go} onEnd={setAtEnd} />
    </>
  );
}

/** Return the number after or before a line, beginning anew at the other end. */
function nextOf(numbers: number[], line: number, step: 1 | -1): number | undefined {
  if (step > 0) return numbers.find((number) => number > line) ?? numbers[0];
  return numbers.findLast((number) => number < line) ?? numbers.at(-1);
}

function useSummary(entry: Entry): Summary | undefined {
  const ask = (signal: AbortSignal) => get<Summary>(`${pathOf(entry.id)}/summary`, { line_numbers: MARKS }, signal);
  return useLoaded(ask, [entry.id, entry.state]).answer;
}

function marksOf(summary: Summary | undefined, matches: number[] = []): Marks {
  return { errors: summary?.errors.line_numbers ?? [], warnings: summary?.warnings.line_numbers ?? [], matches };
}
