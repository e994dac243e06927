// One capture: its facts, its lines, search in it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { change, type Entry, get, pathOf, address, type Severity, type SignedIn, type Summary } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useKeys } from "../keys.ts";
import { useLoaded } from "../load.ts";
import { Copy, Name, Time, Trouble, Waiting } from "../parts/small.tsx";
import { Structured } from "./json.tsx";
import { link, setQuery, useRoute } from "../route.ts";
import { countAll, type Found, patternOf, search, searchOn, type Wanted } from "../viewer/search.ts";
import { useGrowth } from "../viewer/growth.ts";
import { View, type ViewHandle } from "../viewer/view.tsx";
import { lineCount, SEEN_LABEL, seenRanges } from "../viewer/seen.ts";
import { visible } from "../viewer/text.ts";

const TYPING_MS = 250;
/** Errors, and warnings, that can be walked through and are on the map. */
const MARKS = 1000;

export function CapturePage({ reference, who }: { reference: string; who: SignedIn }) {
  const [version, setVersion] = useState(0);
  const [isShown, setShown] = useState(false);
  const entry = useLoaded((signal) => get<Entry>(pathOf(reference), {}, signal), [reference, version]);
  useGrowth(entry.answer, () => setVersion((before) => before + 1));
  if (entry.problem) return <Trouble problem={entry.problem} />;
  if (!entry.answer) return <Waiting />;
  return (
    <article class="capture">
      <Facts entry={entry.answer} who={who} onChanged={() => setVersion(version + 1)} />
      {isStructured(entry.answer) && (
        <details class="as-data" onToggle={(event) => setShown(event.currentTarget.open)}>
          <summary>As a tree or a table</summary>
          {isShown && <Structured entry={entry.answer} />}
        </details>
      )}
      <Output entry={entry.answer} />
    </article>
  );
}

/** Whether the output may be shown as data. It is looked at only when somebody asks for that. */
function isStructured(entry: Entry): boolean {
  return entry.kind === "json" || /json|csv|ndjson/.test(entry.content_type);
}

function Facts({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const ratio = entry.stored_size ? `${(entry.size / entry.stored_size).toFixed(1)} times smaller` : "";
  return (
    <header class="facts">
      <h1>
        <Name text={entry.tool} empty="a tool without a name" /> <span class={`state ${entry.state}`}>{entry.state}</span>
        {entry.held && <span class="state">on hold</span>}
      </h1>
      <dl>
        <Fact term="Session">
          {entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" empty="none" />}
        </Fact>
        <Fact term="Call"><Name text={entry.call_id} /></Fact>
        <Fact term="Status"><Name text={entry.status} /></Fact>
        <Fact term="Size">{bytes(entry.size)}, {count(entry.lines)} lines</Fact>
        <Fact term="Stored"><span title={ratio}>{bytes(entry.stored_size)}</span></Fact>
        <Fact term={entry.state === "live" ? "Began" : "Captured"}><Time at={entry.created} /></Fact>
        {entry.last_append && <Fact term="Last output"><Time at={entry.last_append} /></Fact>}
        {entry.gap && <Fact term="Missing at the end">{entry.gap.size === null ? "nobody knows how much" : bytes(entry.gap.size)}</Fact>}
        <Fact term="Expires">{entry.held ? "not before it is released" : <Time at={entry.expires} />}</Fact>
        <Fact term="First read">
          {entry.first_read ? <Time at={entry.first_read} /> : "not yet, as far as the service knows"}
          {entry.first_read && <span class="quiet small" title="Reads on this page do not count. Who read it, and when again, is in the audit log, if the operator keeps one."> (by whom: see the audit log)</span>}
        </Fact>
        {Object.entries(entry.labels).filter(([name]) => name !== SEEN_LABEL).map(([name, value]) => (
          <Fact term={name}><Name text={value} /></Fact>
        ))}
      </dl>
      <p class="actions">
        <Copy text={entry.id} label="Copy handle" />
        <Copy text={`overspill tail ${entry.id}`} label="Copy command" />
        <Copy text={`client.content("${entry.id}")`} label="Copy code" />
        <a class="button small" href={address(`${pathOf(entry.id)}/content`)} download={`${entry.id}.txt`}>Download</a>
        <Changes entry={entry} who={who} onChanged={onChanged} />
      </p>
    </header>
  );
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{visible(term)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What changes a capture, for those who may. */
function Changes({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const [problem, setProblem] = useState<Error>();
  const attempt = (work: Promise<unknown>, then: () => void) => void work.then(then, setProblem);
  const remove = () => {
    if (confirm(`Delete this output for good? ${bytes(entry.size)}, ${entry.id}`))
      attempt(change("DELETE", pathOf(entry.id)), () => (location.hash = link(["captures"])));
  };
  const keep = (days: number) => attempt(change("PATCH", pathOf(entry.id), { ttl: days * 86400 }), onChanged);
  return (
    <>
      {who.scopes.includes("write") && !entry.held && (
        <label class="small">
          Keep for{" "}
          <select value="" onChange={(event) => keep(Number(event.currentTarget.value))}>
            <option value="" disabled>…</option>
            <option value="1">1 day</option>
            <option value="7">7 days</option>
            <option value="30">30 days</option>
            <option value="90">90 days</option>
          </select>
        </label>
      )}
      {who.scopes.includes("delete") && !entry.held && (
        <button type="button" class="small danger" onClick={remove}>Delete</button>
      )}
      {problem && <Trouble problem={problem} />}
    </>
  );
}

/** `12` or `12-40` in the address: the lines that a link points to. */
function linesOf(text: string | null): [number, number] | null {
  const found = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  return [first, Math.max(first, Number(found[2] ?? first))];
}

function Output({ entry }: { entry: Entry }) {
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
    e: () => goToNext(summary.answer?.errors.line_numbers ?? [], selected?.[0] ?? 0),
    ":": () => document.getElementById("jump")?.focus(),
  });
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
        <SearchResult wanted={wanted} found={found} problem={problem} onNext={next} />
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
            {count(lineCount(seen))} lines seen by the model
          </button>
        )}
        {selected && <Copy text={location.href} label={`Copy link to ${selected[0] === selected[1] ? `line ${selected[0]}` : `lines ${selected[0]}–${selected[1]}`}`} />}
      </div>
      <View
        reference={entry.id}
        total={entry.lines}
        size={entry.size}
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
      />
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

/** Search as the pattern in the address changes. `next` goes through the matches, and fetches more at their end. */
function useSearch(reference: string, wanted: Wanted, goTo: (line: number) => void) {
  const [found, setFound] = useState<Found>();
  const [problem, setProblem] = useState<Error>();
  const at = useRef(-1);
  useEffect(() => {
    setFound(undefined);
    setProblem(undefined);
    at.current = -1;
    if (!wanted.pattern) return;
    const controller = new AbortController();
    const failed = (error: Error) => controller.signal.aborted || setProblem(error);
    search(reference, wanted, controller.signal).then((first) => {
      setFound(first);
      if (first.numbers[0] !== undefined) {
        at.current = 0;
        goTo(first.numbers[0]);
      }
      if (!first.next) setFound({ ...first, total: first.numbers.length });
      else
        countAll(reference, wanted, controller.signal).then(
          (total) => setFound((before) => before && { ...before, total }),
          failed,
        );
    }, failed);
    return () => controller.abort();
  }, [reference, wanted.pattern, wanted.ignoreCase, wanted.isFixed, wanted.isInverted]);

  const next = (step: 1 | -1) => void move(step).catch(setProblem);
  const move = async (step: 1 | -1) => {
    if (!found || found.numbers.length === 0) return;
    let known = found;
    let position = at.current + step;
    if (position >= known.numbers.length && known.next) {
      const more = await searchOn(reference, known);
      known = { ...more, ...(found.total === undefined ? {} : { total: found.total }) };
      setFound(known);
    }
    if (position < 0) position = known.numbers.length - 1;
    if (position >= known.numbers.length) position = 0;
    at.current = position;
    const line = known.numbers[position]!;
    setQuery({ lines: line }, true);
    goTo(line);
  };
  return { found, problem, next };
}

function SearchField({ wanted, field }: { wanted: Wanted; field: preact.RefObject<HTMLInputElement | null> }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  return (
    <span class="search" role="search">
      <input
        ref={field}
        type="text"
        enterKeyHint="search"
        aria-label="Search in this output"
        placeholder="Search ( / )"
        defaultValue={wanted.pattern}
        onInput={(event) => {
          const pattern = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setQuery({ q: pattern }, true), TYPING_MS);
        }}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
      />
      <Toggle name="i" label="Aa" title="Ignore case" isOn={wanted.ignoreCase} />
      <Toggle name="regex" label=".*" title="The pattern is a regular expression (RE2)" isOn={!wanted.isFixed} />
      <Toggle name="v" label="¬" title="Lines that do not match" isOn={wanted.isInverted} />
    </span>
  );
}

function Toggle({ name, label, title, isOn }: { name: string; label: string; title: string; isOn: boolean }) {
  return (
    <button type="button" class="small toggle" aria-pressed={isOn} aria-label={title} title={title} onClick={() => setQuery({ [name]: isOn ? null : 1 }, true)}>
      {label}
    </button>
  );
}

function SearchResult(props: { wanted: Wanted; found: Found | undefined; problem: Error | undefined; onNext(step: 1 | -1): void }) {
  const { wanted, found, problem, onNext } = props;
  if (!wanted.pattern) return null;
  if (problem) return <span class="trouble" role="alert">{problem.message}</span>;
  if (!found) return <span class="quiet" role="status">searching…</span>;
  const total = found.total ?? found.numbers.length;
  return (
    <span class="small">
      <span role="status">{total ? `${count(total)}${found.total === undefined ? " or more" : ""} lines` : "no line matches"}</span>{" "}
      <button type="button" class="small" disabled={!total} onClick={() => onNext(-1)} aria-label="Previous match (N)">↑</button>
      <button type="button" class="small" disabled={!total} onClick={() => onNext(1)} aria-label="Next match (n)">↓</button>
    </span>
  );
}

