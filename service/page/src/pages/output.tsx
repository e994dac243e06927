// The lines of a capture with what leads through them: search, errors, links to lines, what the model saw.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Entry, get, pathOf, type Severity, type Summary } from "../api.ts";
import { bytes, count, lineCount } from "../format.ts";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { Copy } from "../parts/small.tsx";
import { setQuery, useRoute } from "../route.ts";
import { textOf } from "../viewer/lines.ts";
import { Matches } from "../viewer/matches.tsx";
import { patternOf, type Wanted } from "../viewer/search.ts";
import { seenCount, seenRanges } from "../viewer/seen.ts";
import { TERMINAL_LABEL } from "../viewer/text.ts";
import { View, type ViewHandle } from "../viewer/view.tsx";
import { CONTEXTS, OnlyMatches, SearchField, SearchResult, useSearch } from "./search.tsx";

/** Errors, and warnings, that can be walked through and are on the map. */
const MARKS = 1000;

/** `12` or `12-40` in the address: the lines that a link points to. */
function linesOf(text: string | null): [number, number] | null {
  const found = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  return [first, Math.max(first, Number(found[2] ?? first))];
}

export function Output({ entry }: { entry: Entry }) {
  const { query } = useRoute();
  const selected = linesOf(query.get("lines"));
  const view = useRef<ViewHandle>(null);
  const field = useRef<HTMLInputElement>(null);
  const [isWrapped, setWrapped] = useState(false);
  const summary = useLoaded((signal) => get<Summary>(`${pathOf(entry.id)}/summary`, { line_numbers: MARKS }, signal), [entry.id, entry.state]);
  const wanted: Wanted = {
    pattern: query.get("q") ?? "",
    ignoreCase: query.has("i"),
    isFixed: !query.has("regex"),
    isInverted: query.has("v"),
  };
  const seen = useMemo(() => seenRanges(entry), [entry]);
  const { found, problem, next } = useSearch(entry.id, wanted, (line) => view.current?.goTo(line));

  useEffect(() => {
    if (selected) view.current?.reveal(selected[0]);
  }, [entry.id, selected?.[0]]);
  useKeys({
    "/": () => field.current?.focus(),
    n: () => next(1),
    N: () => next(-1),
    g: () => view.current?.goTo(1),
    G: () => view.current?.goTo(entry.lines),
    j: () => view.current?.move(1),
    k: () => view.current?.move(-1),
    " ": () => view.current?.page(1),
    b: () => view.current?.page(-1),
    w: () => setWrapped(!isWrapped),
    "&": () => wanted.pattern && setQuery({ only: context === undefined ? 2 : null }),
    "Ctrl+f": () => field.current?.select(),
    e: () => goToNext(summary.answer?.errors.line_numbers ?? [], selected?.[0] ?? 0),
    ":": () => document.getElementById("jump")?.focus(),
  });
  const context = CONTEXTS.find((lines) => String(lines) === query.get("only"));
  const goToNext = (numbers: number[], after: number) => {
    const line = numbers.find((number) => number > after) ?? numbers[0];
    if (line === undefined) return;
    setQuery({ lines: line }, true);
    view.current?.goTo(line);
  };

  if (entry.size === 0)
    return <p class="quiet" role="status">{entry.state === "live" ? "Nothing yet. This page shows what comes." : "This output is empty."}</p>;
  return (
    <section class="output" aria-label="Output">
      <div class="tools">
        <SearchField wanted={wanted} field={field} />
        <SearchResult wanted={wanted} found={found} problem={problem} onNext={context === undefined ? next : undefined} />
        {wanted.pattern && <OnlyMatches context={context} />}
        <label class="small">
          Line{" "}
          <input
            id="jump"
            class="jump"
            inputMode="numeric"
            onKeyDown={(event) => {
              const line = Number(event.currentTarget.value.replace(/\D/g, ""));
              if (event.key !== "Enter" || !line) return;
              setQuery({ lines: Math.min(line, entry.lines) });
              view.current?.goTo(Math.min(line, entry.lines));
              event.currentTarget.blur();
            }}
          />
        </label>
        <label class="small">
          <input type="checkbox" checked={isWrapped} onChange={() => setWrapped(!isWrapped)} /> Wrap
        </label>
        {summary.answer && (
          <span class="small">
            <Severities name="errors" found={summary.answer.errors} onNext={(numbers) => goToNext(numbers, selected?.[0] ?? 0)} />{" "}
            <Severities name="warnings" found={summary.answer.warnings} onNext={(numbers) => goToNext(numbers, selected?.[0] ?? 0)} />
            {summary.answer.truncated && <span class="quiet"> in the first {bytes(summary.answer.scanned_bytes)}</span>}
          </span>
        )}
        {entry.state === "live" && (
          <button type="button" class="small" title="Go on with the output as it grows (G). Scroll up to stay where you are." onClick={() => view.current?.goTo(entry.lines)}>
            <span class="state live">live</span> Go to the end
          </button>
        )}
        {seen.length > 0 && (
          <button type="button" class="small seen-count" title="Whole in the notice that stood for this output in the conversation: marked at the left. The model may have seen more, in part." onClick={() => goToNext(seen.map(([first]) => first), selected?.[0] ?? 0)}>
            {lineCount(seenCount(seen))} seen by the model
          </button>
        )}
        <span>
          <button type="button" class="small" aria-label="First line (g)" title="First line (g)" onClick={() => view.current?.goTo(1)}>⇤</button>{" "}
          <button type="button" class="small" aria-label="Last line (G)" title="Last line (G)" onClick={() => view.current?.goTo(entry.lines)}>⇥</button>
        </span>
        {selected && <Copy text={() => textOf(entry.id, ...selected)} label={selected[0] === selected[1] ? "Copy line" : `Copy ${lineCount(selected[1] - selected[0] + 1)}`} />}
        {selected && <Copy text={location.href} label={`Copy link to ${selected[0] === selected[1] ? `line ${selected[0]}` : `lines ${selected[0]}–${selected[1]}`}`} />}
      </div>
      {wanted.pattern && context !== undefined ? (
        <Matches
          reference={entry.id}
          wanted={wanted}
          context={context}
          onGo={(line) => (setQuery({ only: null, lines: line }), setTimeout(() => view.current?.goTo(line)))}
        />
      ) : <View
        reference={entry.id}
        total={entry.lines}
        size={entry.size}
        isTerminal={TERMINAL_LABEL in entry.labels}
        isWrapped={isWrapped}
        selected={selected}
        seen={seen}
        marks={{
          errors: summary.answer?.errors.line_numbers ?? [],
          warnings: summary.answer?.warnings.line_numbers ?? [],
          matches: found?.numbers ?? [],
        }}
        highlight={patternOf(wanted)}
        onSelect={(first, last) => setQuery({ lines: first === last ? first : `${first}-${last}` }, true)}
        handle={view}
      />}
    </section>
  );
}

/** How many lines look like errors, or warnings. Click to go to the next. */
function Severities({ name, found, onNext }: { name: string; found: Severity; onNext(numbers: number[]): void }) {
  const isMore = found.count > found.line_numbers.length;
  const title = isMore ? `The first ${count(found.line_numbers.length)} are on the map; search finds the others` : `Go to the next of the ${name}`;
  return (
    <button type="button" class="small" disabled={!found.count} title={title} onClick={() => onNext(found.line_numbers)}>
      {count(found.count)} {name}
    </button>
  );
}
