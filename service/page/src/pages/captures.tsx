// The list of captures, with filters in the address, and the captures of one session in the order of time.
import { useEffect, useState } from "preact/hooks";
import { type Entry, get, type Listing } from "../api.ts";
import { bytes, count, countOf, lineCount } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { Clock, Empty, Name, Time, Trouble, Waiting } from "../parts/small.tsx";
import { link, setQuery, useRoute } from "../route.ts";

const PAGE = 50;

export function CapturesPage() {
  const { query } = useRoute();
  const filters = {
    tool: query.get("tool"),
    session: query.get("session"),
    call_id: query.get("call"),
    state: query.get("state"),
    cursor: query.get("cursor"),
  };
  const isFiltered = Object.values(filters).some(Boolean);
  const isBySize = query.has("largest") && !isFiltered;
  const [hasLive, setLive] = useState(false);
  const asked = isBySize ? { sort: "size" } : filters;
  const found = useLoaded((signal) => get<Listing>("captures", { ...asked, limit: PAGE }, signal), [JSON.stringify(asked), useTicks(hasLive)]);
  useEffect(() => setLive(filters.state === "live" || !!found.answer?.captures.some((each) => each.state === "live")), [found.answer, filters.state]);
  return (
    <section>
      <h1>Captures</h1>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          const { handle, ...given } = Object.fromEntries(new FormData(event.currentTarget)) as Record<string, string>;
          if (handle?.trim()) location.hash = link(["captures", handle.trim()]);
          else setQuery({ ...given, cursor: null, largest: null });
        }}
      >
        <Filter name="tool" label="Tool" value={filters.tool} />
        <Filter name="session" label="Session" value={filters.session} />
        <Filter name="call" label="Call" value={filters.call_id} />
        <label class="small">
          State{" "}
          <select name="state">
            {["", "complete", "partial", "live"].map((state) => (
              <option value={state} selected={state === (filters.state ?? "")}>{state || "any"}</option>
            ))}
          </select>
        </label>
        <label class="small">
          Handle <input name="handle" placeholder="cap_… or call:…" spellcheck={false} autocomplete="off" />
        </label>
        <button type="submit" class="small">Show</button>
        {isFiltered && <a class="small" href={link(["captures"])}>all captures</a>}
        {!isFiltered && (
          <button type="button" class="small toggle" aria-pressed={isBySize} onClick={() => setQuery({ largest: isBySize ? null : 1 })}>
            Largest first
          </button>
        )}
      </form>
      <Found found={found} isFiltered={isFiltered} />
    </section>
  );
}

function Filter({ name, label, value }: { name: string; label: string; value: string | null }) {
  return (
    <label class="small">
      {label} <input name={name} defaultValue={value ?? ""} />
    </label>
  );
}

function Found({ found, isFiltered }: { found: ReturnType<typeof useLoaded<Listing>>; isFiltered: boolean }) {
  if (found.problem) return <Trouble problem={found.problem} />;
  if (!found.answer) return <Waiting />;
  const { captures, cursor, incomplete } = found.answer;
  if (captures.length === 0 && isFiltered)
    return (
      <Empty title="No capture fits">
        <p>It may have expired, or a filter is too narrow. A filter must be equal, capitals included.</p>
      </Empty>
    );
  if (captures.length === 0) return <FirstCapture />;
  return (
    <>
      {incomplete && <p class="trouble" role="status">The catalog is being rebuilt: captures may be missing for a while.</p>}
      <Table captures={captures} />
      <p>{cursor && <a class="button" href={link(["captures"], { ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])), cursor })}>Older captures</a>}</p>
    </>
  );
}

function FirstCapture() {
  return (
    <Empty title="Nothing is captured yet">
      <p>Guard the tools of an agent, and their large outputs appear here:</p>
      <pre>{`from overspill import Client, Guard

async with Client() as client, Guard(client, session="run-42") as guard:
    shown = await guard.process(output, tool="pytest")`}</pre>
      <p>Or store something now:</p>
      <pre>overspill run -- find / -name "*.py"</pre>
    </Empty>
  );
}

function Table({ captures }: { captures: Entry[] }) {
  return (
    <div class="scrolling">
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
        <tbody>
          {captures.map((each) => (
            <tr key={each.id}>
              <td><a href={link(["captures", each.id])}><Time at={each.created} /></a></td>
              <td><Name text={each.tool} /></td>
              <td>{each.session ? <a href={link(["sessions", each.session])}><Name text={each.session} /></a> : <Name text="" />}</td>
              <td><Name text={each.call_id} /></td>
              <td><Outcome entry={each} /></td>
              <td class="figure">{bytes(each.size)}</td>
              <td class="figure">{each.state === "live" ? "–" : count(each.lines)}</td>
              <td>{each.first_read ? <Time at={each.first_read} /> : <span class="quiet">no</span>}</td>
              <td>{each.held ? "on hold" : <Time at={each.expires} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** How a call ended as far as anybody said, or that its output is not whole. */
function Outcome({ entry, empty }: { entry: Entry; empty?: string }) {
  if (entry.state !== "complete") return <span class={`state ${entry.state}`}>{entry.state}</span>;
  return <Name text={entry.status} {...(empty === undefined ? {} : { empty })} />;
}

/** The calls of a session from the first to the last, a bar for each as long as its output. */
export function SessionPage({ session }: { session: string }) {
  const [limit, setLimit] = useState(200);
  const [hasLive, setLive] = useState(false);
  const found = useLoaded((signal) => get<Listing>("captures", { session, limit }, signal), [session, limit, useTicks(hasLive)]);
  useEffect(() => setLive(!!found.answer?.captures.some((each) => each.state === "live")), [found.answer]);
  if (found.problem) return <Trouble problem={found.problem} />;
  if (!found.answer) return <Waiting />;
  const captures = [...found.answer.captures].reverse();
  const largest = Math.max(1, ...captures.map((each) => each.size));
  if (captures.length === 0)
    return (
      <Empty title="This session has no captures">
        <p>They have expired or were deleted, or every output of it was small.</p>
        <p><a href={link(["captures"])}>All captures</a></p>
      </Empty>
    );
  return (
    <section>
      <h1>Session <Name text={session} /></h1>
      <p class="quiet">{countOf(captures.length, "captured output")}, {bytes(captures.reduce((sum, each) => sum + each.size, 0))}. What was small enough stayed in the conversation, and is not here.</p>
      {found.answer.cursor && limit < 1000 && <p><button type="button" class="small" onClick={() => setLimit(1000)}>Show older ones too</button></p>}
      <ol class="timeline">
        {captures.map((each) => (
          <li key={each.id}>
            <span class="what">
              <a href={link(["captures", each.id])}>
                <Clock at={each.created} /> <Name text={each.tool} empty="a tool without a name" />
              </a>{" "}
              <Name text={each.call_id} empty="" /> <Outcome entry={each} empty="" />
            </span>
            <span class="bar"><span style={{ width: `${Math.max(0.5, (100 * each.size) / largest)}%` }} /></span>
            <span class="small quiet">
              {bytes(each.size)}{each.state === "live" ? "" : `, ${lineCount(each.lines)}`}
              {each.first_read ? <>, read <Time at={each.first_read} /></> : ", not read"}
              {each.held ? ", on hold" : <>, expires <Time at={each.expires} /></>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
