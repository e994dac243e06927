// Sessions as a table, put together from their captures.
import { Scrolling } from "../parts/boxes.tsx";
import { Name, StatePill, Time } from "../parts/text.tsx";
import { bytes, count } from "../format.ts";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";

export interface Session {
  name: string;
  captures: number;
  read: number;
  size: number;
  tools: string[];
  first: string;
  last: string;
  isLive: boolean;
}

/** Return the sessions of captures that come newest first, in that order. */
export function sessionsOf(captures: Entry[]): Session[] {
  const found = new Map<string, Session>();
  for (const { session: name, size, tool, created, state, first_read } of captures) {
    const session = found.get(name) ?? { name, captures: 0, read: 0, size: 0, tools: [], first: created, last: created, isLive: false };
    found.set(name, session);
    session.captures += 1;
    session.read += first_read ? 1 : 0;
    session.size += size;
    session.first = created;
    session.isLive ||= state === "live";
    if (!session.tools.includes(tool)) session.tools.push(tool);
  }
  return [...found.values()];
}

export function SessionTable({ sessions }: { sessions: Session[] }) {
  return (
    <Scrolling label="List of sessions">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col" class="figure">Captures</th>
            <th scope="col" class="figure medium">Read back</th>
            <th scope="col" class="figure medium">Size</th>
            <th scope="col">Last capture</th>
            <th scope="col" class="wide">First capture</th>
            <th scope="col" class="medium">Tools</th>
          </tr>
        </thead>
        <tbody>{sessions.map((each) => <Line key={each.name} session={each} />)}</tbody>
      </table>
    </Scrolling>
  );
}

/** Tools that are named. */
const TOOLS = 4;

function Line({ session: { name, captures, read, size, tools, first, last, isLive } }: { session: Session }) {
  return (
    <tr>
      <td>{name ? <a class="row-link" href={link(["sessions", name])}><Name text={name} /></a> : <Name text="" empty="without a session" />}</td>
      <td class="figure">{count(captures)}</td>
      <td class="figure medium">{count(read)}</td>
      <td class="figure medium">{bytes(size)}</td>
      <td><Time at={last} /> {isLive && <StatePill state="live" />}</td>
      <td class="wide"><Time at={first} /></td>
      <td class="text medium">
        {tools.slice(0, TOOLS).map((tool, at) => <>{at > 0 && ", "}<Name text={tool} empty="without a name" /></>)}
        {tools.length > TOOLS && <span class="quiet"> and {count(tools.length - TOOLS)} more</span>}
      </td>
    </tr>
  );
}
