// The sessions of the newest captures: who looks for what an agent did finds it here, by a part of its name or by time.
import { useEffect, useState } from "preact/hooks";
import { type Entry, get, type Listing } from "../api.ts";
import { bytes, count, countOf } from "../format.ts";
import { Empty, Name, Scrolling, Time, Trouble, Waiting } from "../parts/small.tsx";
import { GuardLines } from "../parts/first_steps.tsx";
import { link, setQuery, useRoute } from "../route.ts";

/** Captures of one answer. */
const PAGE = 200;

interface Found {
  captures: Entry[];
  cursor: string | null;
}

interface Session {
  name: string;
  captures: number;
  size: number;
  tools: string[];
  first: string;
  last: string;
  isLive: boolean;
}

/** Return the sessions of captures that come newest first, in that order. */
function sessionsOf(captures: Entry[]): Session[] {
  const found = new Map<string, Session>();
  for (const { session: name, size, tool, created, state } of captures) {
    const session = found.get(name) ?? { name, captures: 0, size: 0, tools: [], first: created, last: created, isLive: false };
    found.set(name, session);
    session.captures += 1;
    session.size += size;
    session.first = created;
    session.isLive ||= state === "live";
    if (!session.tools.includes(tool)) session.tools.push(tool);
  }
  return [...found.values()];
}

export function SessionsPage() {
  const part = useRoute().query.get("name") ?? "";
  const [found, setFound] = useState<Found>();
  const [problem, setProblem] = useState<Error>();
  const more = async (known?: Found) => {
    const next = await get<Listing>("captures", { limit: PAGE, cursor: known?.cursor });
    setFound({ captures: [...(known?.captures ?? []), ...next.captures], cursor: next.cursor });
  };
  useEffect(() => void more().catch(setProblem), []);
  const sessions = sessionsOf(found?.captures ?? []).filter((each) => each.name.toLowerCase().includes(part.toLowerCase()));
  return (
    <section>
      <h1>Sessions</h1>
      <Search part={part} />
      {problem && <Trouble problem={problem} />}
      {!found && !problem && <Waiting />}
      {found && sessions.length > 0 && <Table sessions={sessions} />}
      {found && sessions.length === 0 && <Nothing part={part} hasCaptures={found.captures.length > 0} />}
      {found && found.captures.length > 0 && <Reach found={found} onMore={() => void more(found).catch(setProblem)} />}
    </section>
  );
}

function Search({ part }: { part: string }) {
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    location.hash = link(["sessions", String(new FormData(event.currentTarget).get("name")).trim()]);
  };
  return (
    <form class="tools" role="search" onSubmit={submitted}>
      <label class="small">
        Part of a name{" "}
        <input name="name" required spellcheck={false} autocomplete="off" defaultValue={part} onInput={(event) => setQuery({ name: event.currentTarget.value }, true)} />
      </label>
      <button type="submit" class="small">Open the session of exactly this name</button>
    </form>
  );
}

function Table({ sessions }: { sessions: Session[] }) {
  return (
    <Scrolling label="Sessions">
      <table>
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">Last capture</th>
            <th scope="col">First capture</th>
            <th scope="col" class="figure">Captures</th>
            <th scope="col" class="figure">Size</th>
            <th scope="col">Tools</th>
          </tr>
        </thead>
        <tbody>{sessions.map((each) => <Line key={each.name} session={each} />)}</tbody>
      </table>
    </Scrolling>
  );
}

const TOOLS = 4;

function Line({ session: { name, captures, size, tools, first, last, isLive } }: { session: Session }) {
  return (
    <tr>
      <td>{name ? <a href={link(["sessions", name])}><Name text={name} /></a> : <Name text="" empty="without a session" />}</td>
      <td><Time at={last} /> {isLive && <span class="state live">live</span>}</td>
      <td><Time at={first} /></td>
      <td class="figure">{count(captures)}</td>
      <td class="figure">{bytes(size)}</td>
      <td class="text">
        {tools.slice(0, TOOLS).map((tool, at) => <>{at > 0 && ", "}<Name text={tool} empty="without a name" /></>)}
        {tools.length > TOOLS && <span class="quiet"> and {count(tools.length - TOOLS)} more</span>}
      </td>
    </tr>
  );
}

/** How far back the list goes, and further. */
function Reach({ found, onMore }: { found: Found; onMore(): void }) {
  const oldest = found.captures.at(-1)!.created;
  if (!found.cursor) return <p class="quiet">These are the sessions of {countOf(found.captures.length, "capture")}: all there are.</p>;
  return (
    <p class="quiet">
      These are the sessions of the newest {count(found.captures.length)} captures, since <Time at={oldest} />.{" "}
      <button type="button" class="small" onClick={onMore}>Look further back</button>
    </p>
  );
}

function Nothing({ part, hasCaptures }: { part: string; hasCaptures: boolean }) {
  if (!hasCaptures)
    return (
      <Empty title="No session has a capture yet">
        <GuardLines what="its session appears" />
      </Empty>
    );
  return (
    <Empty title="No session fits">
      <p>None of these has “<Name text={part} />” in its name. Look further back, or open the session of exactly this name.</p>
    </Empty>
  );
}
