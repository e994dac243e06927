// The lines of a capture with what leads through them: search, errors, links to lines, what the model saw.
import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Entry, get, pathOf, type Summary } from "../api.ts";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { setQuery, useRoute } from "../route.ts";
import { Matches } from "../viewer/matches.tsx";
import type { Marks } from "../viewer/minimap.tsx";
import { Preview } from "../viewer/preview.tsx";
import { patternOf, type Wanted } from "../viewer/search.ts";
import { type Range, seenRanges } from "../viewer/seen.ts";
import { TERMINAL_LABEL } from "../viewer/text.ts";
import { View, type ViewHandle } from "../viewer/view.tsx";
import { CONTEXTS, OnlyMatches, SearchField, SearchResult, useSearch } from "./search.tsx";
import { JUMP, SeenCount, Severities, Toolbar, WrapBox } from "./toolbar.tsx";

/** Errors, and warnings, that can be walked through and are on the map. */
const MARKS = 1000;
/** Lines around a match, unless the reader chooses. */
const USUAL_CONTEXT = 2;

/** What the address says of an output. */
interface Asked {
  wanted: Wanted;
  /** The lines that a link points to. */
  selected: Range | null;
  /** Lines around each match, if only matches are shown. */
  context: number | undefined;
  /** Whether what the model saw is shown beside the whole. */
  isBeside: boolean;
}

function asked(query: URLSearchParams): Asked {
  return {
    wanted: {
      pattern: query.get("q") ?? "",
      ignoreCase: query.has("i"),
      isFixed: !query.has("regex"),
      isInverted: query.has("v"),
    },
    selected: linesOf(query.get("lines")),
    context: query.get("q") ? CONTEXTS.find((lines) => String(lines) === query.get("only")) : undefined,
    isBeside: query.has("seen"),
  };
}

/** Read `12` or `12-40`. */
function linesOf(text: string | null): Range | null {
  const found = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  return [first, Math.max(first, Number(found[2] ?? first))];
}

export function Output({ entry }: { entry: Entry }) {
  if (entry.size > 0) return <Whole entry={entry} />;
  return <p class="quiet" role="status">{entry.state === "live" ? "Nothing yet. This page shows what comes." : "This output is empty."}</p>;
}

function Whole({ entry }: { entry: Entry }) {
  const { wanted, selected, context, isBeside } = asked(useRoute().query);
  const view = useRef<ViewHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [isWrapped, setWrapped] = useState(false);
  const summary = useSummary(entry);
  const seen = useMemo(() => seenRanges(entry), [entry]);
  const go = (line: number) => view.current?.goTo(line);
  const goToNext = (numbers: number[]) => {
    const line = numbers.find((number) => number > (selected?.[0] ?? 0)) ?? numbers[0];
    if (line === undefined) return;
    setQuery({ lines: line }, true);
    go(line);
  };
  const { found, problem, next } = useSearch(entry.id, wanted, selected?.[0], go);
  const wrap = () => setWrapped(!isWrapped);
  useEffect(() => {
    if (selected) view.current?.reveal(selected[0]);
  }, [entry.id, selected?.[0]]);
  useViewKeys(view, entry);
  useKeys({
    "/": () => field.current?.focus(),
    "Ctrl+f": () => field.current?.select(),
    n: () => next(1),
    N: () => next(-1),
    "&": () => wanted.pattern && setQuery({ only: context === undefined ? USUAL_CONTEXT : null }),
    e: () => goToNext(summary?.errors.line_numbers ?? []),
    w: wrap,
    p: () => seen.length > 0 && setQuery({ seen: isBeside ? null : 1 }, true),
  });
  return (
    <section class="output" aria-label="Output">
      <div class="tools">
        <SearchField wanted={wanted} field={field} />
        {wanted.pattern && <OnlyMatches context={context} />}
        <SearchResult wanted={wanted} found={found} problem={problem} onNext={context === undefined ? next : undefined} />
      </div>
      <Toolbar entry={entry} selected={selected} onGo={go}>
        <WrapBox isWrapped={isWrapped} onChange={wrap} />
        {summary && <Severities summary={summary} onNext={goToNext} />}
        {seen.length > 0 && <SeenCount seen={seen} isBeside={isBeside} onNext={goToNext} />}
      </Toolbar>
      <div class="views">
        {isBeside && seen.length > 0 && <Preview reference={entry.id} seen={seen} onGo={(line) => (setQuery({ lines: line }, true), go(line))} />}
        {context === undefined ? (
          <View
            reference={entry.id}
            total={entry.lines}
            size={entry.size}
            isTerminal={TERMINAL_LABEL in entry.labels}
            isWrapped={isWrapped}
            selected={selected}
            seen={seen}
            marks={marksOf(summary, found?.numbers)}
            highlight={patternOf(wanted)}
            onSelect={(first, last) => setQuery({ lines: first === last ? first : `${first}-${last}` }, true)}
            handle={view}
          />
        ) : (
          <Matches
            reference={entry.id}
            wanted={wanted}
            context={context}
            onGo={(line) => (setQuery({ only: null, lines: line }), setTimeout(() => go(line)))}
          />
        )}
      </div>
    </section>
  );
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
