// The list of captures, with filters in the address.
import { useEffect, useState } from "preact/hooks";
import { type Entry, get, type Listing } from "../api.ts";
import { bytes, count } from "../format.ts";
import { type Loaded, useLoaded, useTicks } from "../load.ts";
import { GuardLines } from "../parts/first_steps.tsx";
import { Code, Empty, Name, Outcome, Scrolling, Time, Trouble, Waiting } from "../parts/small.tsx";
import { link, setQuery, useRoute } from "../route.ts";

const PAGE = 50;
const STATES = ["", "complete", "partial", "live"];

interface Filters {
  tool: string | null;
  session: string | null;
  call_id: string | null;
  state: string | null;
  cursor: string | null;
}

function filtersOf(query: URLSearchParams): Filters {
  const [tool, session, call_id, state, cursor] = ["tool", "session", "call", "state", "cursor"].map((name) => query.get(name));
  return { tool: tool!, session: session!, call_id: call_id!, state: state!, cursor: cursor! };
}

export function CapturesPage() {
  const { query } = useRoute();
  const filters = filtersOf(query);
  const isFiltered = Object.values(filters).some(Boolean);
  const isBySize = query.has("largest") && !isFiltered;
  const [hasLive, setLive] = useState(false);
  const asked = isBySize ? { sort: "size" } : { ...filters };
  const found = useLoaded((signal) => get<Listing>("captures", { ...asked, limit: PAGE }, signal), [JSON.stringify(asked), useTicks(hasLive)]);
  useEffect(() => setLive(filters.state === "live" || !!found.answer?.captures.some((each) => each.state === "live")), [found.answer, filters.state]);
  return (
    <section>
      <h1>Captures</h1>
      <FilterForm filters={filters} key={JSON.stringify(filters)}>
        {isFiltered ? (
          <a class="small" href={link(["captures"])}>all captures</a>
        ) : (
          <button type="button" class="small toggle" aria-pressed={isBySize} onClick={() => setQuery({ largest: isBySize ? null : 1 })}>
            Largest first
          </button>
        )}
      </FilterForm>
      <Found found={found} isFiltered={isFiltered} query={query} />
    </section>
  );
}

function FilterForm({ filters, children }: { filters: Filters; children: preact.ComponentChildren }) {
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { handle, ...given } = Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>;
    if (handle?.trim()) location.hash = link(["captures", handle.trim()]);
    else setQuery({ ...given, cursor: null, largest: null });
  };
  return (
    <form class="tools" role="search" onSubmit={submitted}>
      <Filter name="tool" label="Tool" value={filters.tool} />
      <Filter name="session" label="Session" value={filters.session} />
      <Filter name="call" label="Call" value={filters.call_id} />
      <label class="small">
        State{" "}
        <select name="state">
          {STATES.map((state) => <option value={state} selected={state === (filters.state ?? "")}>{state || "any"}</option>)}
        </select>
      </label>
      <label class="small">
        Handle <input name="handle" placeholder="cap_… or call:…" spellcheck={false} autocomplete="off" />
      </label>
      <button type="submit" class="small">Show</button>
      {children}
    </form>
  );
}

function Filter({ name, label, value }: { name: string; label: string; value: string | null }) {
  return (
    <label class="small">
      {label} <input name={name} defaultValue={value ?? ""} spellcheck={false} autocomplete="off" />
    </label>
  );
}

function Found({ found, isFiltered, query }: { found: Loaded<Listing>; isFiltered: boolean; query: URLSearchParams }) {
  if (found.problem) return <Trouble problem={found.problem} />;
  if (!found.answer) return <Waiting />;
  const { captures, cursor, incomplete } = found.answer;
  if (captures.length === 0) return isFiltered ? <NothingFits /> : <FirstCapture />;
  return (
    <>
      {incomplete && <p class="trouble" role="status">The catalog is being rebuilt: captures may be missing for a while.</p>}
      <Table captures={captures} />
      {cursor && <p><a class="button" href={link(["captures"], { ...Object.fromEntries(query), cursor })}>Older captures</a></p>}
    </>
  );
}

function NothingFits() {
  return (
    <Empty title="No capture fits">
      <p>It may have expired, or a filter is too narrow. A filter must be equal, capitals included.</p>
    </Empty>
  );
}

function FirstCapture() {
  return (
    <Empty title="Nothing is captured yet">
      <GuardLines what="their large outputs appear" />
      <p>Or store something now:</p>
      <Code label="Store something" text={'overspill run -- find / -name "*.py"'} />
    </Empty>
  );
}

function Table({ captures }: { captures: Entry[] }) {
  return (
    <Scrolling label="Captures">
      <table>
        <thead>
          <tr>
            <th scope="col">Captured</th>
            <th scope="col">Tool</th>
            <th scope="col">Session</th>
            <th scope="col">Call</th>
            <th scope="col">Status</th>
            <th scope="col" class="figure">Size</th>
            <th scope="col" class="figure">Lines</th>
            <th scope="col">Read</th>
            <th scope="col">Expires</th>
          </tr>
        </thead>
        <tbody>{captures.map((each) => <Line key={each.id} entry={each} />)}</tbody>
      </table>
    </Scrolling>
  );
}

function Line({ entry }: { entry: Entry }) {
  return (
    <tr>
      <td><a href={link(["captures", entry.id])}><Time at={entry.created} /></a></td>
      <td><Name text={entry.tool} /></td>
      <td>{entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" />}</td>
      <td><Name text={entry.call_id} /></td>
      <td><Outcome entry={entry} /></td>
      <td class="figure">{bytes(entry.size)}</td>
      <td class="figure">{entry.state === "live" ? "–" : count(entry.lines)}</td>
      <td>{entry.first_read ? <Time at={entry.first_read} /> : <span class="quiet">no</span>}</td>
      <td>{entry.held ? "on hold" : <Time at={entry.expires} />}</td>
    </tr>
  );
}
