// The lines of a capture with what leads through them: search, errors, links to lines, what the model saw.
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { lineCount } from "../format.ts";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { Choice } from "../parts/boxes.tsx";
import { setQuery, useRoute } from "../route.ts";
import { get, isGone, pathOf } from "../service/api.ts";
import type { Entry, Summary } from "../service/wire.ts";
import { useHighlighter } from "../viewer/highlighter.ts";
import { Matches } from "../viewer/matches.tsx";
import type { Marks } from "../viewer/minimap.tsx";
import { Preview } from "../viewer/preview.tsx";
import { seenRanges } from "../viewer/seen.ts";
import { TERMINAL_LABEL } from "../viewer/text.ts";
import { View, type ViewHandle } from "../viewer/view.tsx";
import { asked } from "./asked.ts";
import { OnlyMatches, SearchField, SearchResult } from "./search.tsx";
import { isOneLine, isStructured, kindOf, Structured } from "./structured.tsx";
import { JUMP, SeenCount, Severities, Toolbar } from "./toolbar.tsx";
import { useSearch } from "./use_search.ts";

/** Errors, and warnings, that can be walked through and are on the map. */
const MARKS = 1000;
/** Lines around a match, unless the reader chooses. */
const USUAL_CONTEXT = 2;

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
      {mayBeData && isData ? <Structured entry={entry} /> : <Whole {...props} />}
    </section>
  );
}

function Whole({ entry, onGone }: OutputProps) {
  const { wanted, selected, context, isBeside } = asked(useRoute().query);
  const view = useRef<ViewHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [isWrapped, setWrapped] = useState(false);
  const [isAtEnd, setAtEnd] = useState(false);
  const summary = useSummary(entry);
  const seen = useMemo(() => seenRanges(entry), [entry]);
  const go = (line: number) => view.current?.goTo(line);
  const select = (line: number) => {
    setQuery({ lines: line }, true);
    go(line);
  };
  const { found, at, progress, problem, next } = useSearch(entry.id, entry.lines, wanted, selected?.[0], go);
  const marks = useMemo(() => marksOf(summary, found?.numbers), [summary, found?.numbers]);
  const highlighter = useHighlighter(wanted);
  const walk = (numbers: number[], step: 1 | -1 = 1) => {
    const line = nextOf(numbers, selected?.[0] ?? 0, step);
    if (line !== undefined) select(line);
  };
  useEffect(() => {
    if (selected) view.current?.reveal(...selected);
  }, [entry.id, selected?.[0]]);
  useViewKeys(view, entry);
  useKeys({
    "/": () => field.current?.select(),
    "Ctrl+f": () => field.current?.select(),
    n: () => next(1),
    N: () => next(-1),
    "&": () => wanted.pattern && setQuery({ only: context === undefined ? USUAL_CONTEXT : null }),
    e: () => walk(marks.errors),
    E: () => walk(marks.errors, -1),
    w: () => setWrapped(!isWrapped),
    p: () => seen.length > 0 && setQuery({ seen: isBeside ? null : 1 }, true),
  });
  return (
    <>
      <div class="toolbar">
        <span class="tools">
          <SearchField wanted={wanted} field={field} />
          <SearchResult wanted={wanted} found={found} at={at} progress={progress} problem={problem} onNext={context === undefined ? next : undefined} />
          {wanted.pattern && <OnlyMatches context={context} />}
        </span>
        <span class="tools">
          <Severities summary={summary} onNext={walk} />
          {seen.length > 0 && <SeenCount seen={seen} isBeside={isBeside} onNext={walk} />}
        </span>
        <Toolbar entry={entry} selected={selected} isWrapped={isWrapped} isAtEnd={isAtEnd} onWrap={() => setWrapped(!isWrapped)} onGo={go} />
      </div>
      <div class="views">
        {isBeside && seen.length > 0 && <Preview reference={entry.id} total={entry.lines} seen={seen} onGo={select} />}
        <section class="whole" aria-label="The whole output">
          {isBeside && seen.length > 0 && <h2>The whole output: {lineCount(entry.lines)}</h2>}
          {context === undefined ? (
            <View
              reference={entry.id}
              total={entry.lines}
              size={entry.size}
              isTerminal={TERMINAL_LABEL in entry.labels}
              isWrapped={isWrapped}
              startsAtEnd={entry.state === "live" && !selected && !wanted.pattern}
              selected={selected}
              seen={seen}
              marks={marks}
              highlighter={highlighter}
              onSelect={(first, last) => setQuery({ lines: first === last ? first : `${first}-${last}` }, true)}
              onEnd={setAtEnd}
              onProblem={(failed) => isGone(failed) && onGone()}
              handle={view}
            />
          ) : (
            <Matches
              reference={entry.id}
              total={entry.lines}
              wanted={wanted}
              context={context}
              highlighter={highlighter}
              onGo={(line) => (setQuery({ only: null, lines: line }), setTimeout(() => go(line)))}
            />
          )}
        </section>
      </div>
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

/** The keys of `less` that move over lines. */
function useViewKeys(view: RefObject<ViewHandle | null>, entry: Entry): void {
  useKeys({
    g: () => view.current?.goTo(1),
    G: () => view.current?.goTo(entry.lines),
    j: () => view.current?.move(1),
    k: () => view.current?.move(-1),
    " ": () => view.current?.page(1),
    b: () => view.current?.page(-1),
    ":": () => document.getElementById(JUMP)?.focus(),
  });
}
