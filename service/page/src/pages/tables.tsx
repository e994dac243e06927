// The tables of the dashboard: tools or tenants, sizes, modes of reading, and the captures that cost most.
import type { Entry, StatsRow } from "../api.ts";
import { bytes, count, percent } from "../format.ts";
import { Name, Scrolling, Time } from "../parts/small.tsx";
import { link, setQuery, useRoute } from "../route.ts";
import { byMode, bySize, type Group, OTHER } from "./sums.ts";

/** How many tools are told apart: at first, and at most. */
export const TOOLS = 25;
export const MOST_TOOLS = 200;

export function Groups({ groups, kind }: { groups: Group[]; kind: string }) {
  return (
    <>
      <h2>By {kind.toLowerCase()}</h2>
      <Scrolling label={`By ${kind.toLowerCase()}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{kind}</th><th scope="col" class="figure">Outputs</th><th scope="col" class="figure">Too large</th>
              <th scope="col" class="figure">Share</th><th scope="col" class="figure">Bytes kept out</th><th scope="col" class="figure">Tokens kept out</th>
              <th scope="col" class="figure">Captures</th><th scope="col" class="figure">Read back</th><th scope="col" class="figure">Run again</th>
            </tr>
          </thead>
          <tbody>{groups.map((each) => <GroupLine key={each.name} group={each} kind={kind} />)}</tbody>
        </table>
      </Scrolling>
      {groups.some((each) => each.name === OTHER) && groups.length <= MOST_TOOLS && (
        <p><button type="button" class="small" onClick={() => setQuery({ all: 1 })}>Tell more {kind.toLowerCase()}s apart</button></p>
      )}
    </>
  );
}

function GroupLine({ group, kind }: { group: Group; kind: string }) {
  return (
    <tr>
      <td><GroupName name={group.name} kind={kind} /></td>
      <td class="figure">{count(group.outputs)}</td>
      <td class="figure">{count(group.spilled)}</td>
      <td class="figure">{percent(group.spilled, group.outputs)}</td>
      <td class="figure">{bytes(Math.max(0, group.bytes - group.kept))}</td>
      <td class="figure">{count(group.tokens)}</td>
      <td class="figure">{count(group.captures)}</td>
      <td class="figure">{percent(group.read, group.captures)}</td>
      <td class="figure">{count(group.bursts)}</td>
    </tr>
  );
}

function GroupName({ name, kind }: { name: string; kind: string }) {
  if (name === OTHER) return <span class="quiet">all other {kind.toLowerCase()}s</span>;
  const { query } = useRoute();
  if (!name) return <Name text="" empty="without a name" />;
  return <a href={link([], { ...Object.fromEntries(query), tool: name })} title={`Only this ${kind.toLowerCase()}`}><Name text={name} /></a>;
}

export function Sizes({ rows }: { rows: StatsRow[] }) {
  const name = (bound: number) => (bound === Infinity ? "larger" : `up to ${bytes(bound)}`);
  return <Bars title="Sizes of captures" of="Size" what="Captures" bars={bySize(rows).map((each) => [name(each.bound), each.captures])} />;
}

export function Modes({ rows }: { rows: StatsRow[] }) {
  return <Bars title="How captures are read" of="Mode" what="Reads" bars={byMode(rows).map((each) => [each.mode, each.reads])} />;
}

function Bars({ title, of, what, bars }: { title: string; of: string; what: string; bars: [string, number][] }) {
  const most = Math.max(1, ...bars.map(([, amount]) => amount));
  if (bars.length === 0) return null;
  return (
    <>
      <h2>{title}</h2>
      <table class="bars">
        <thead class="unseen"><tr><th scope="col">{of}</th><th scope="col">{what}</th></tr></thead>
        <tbody>
          {bars.map(([name, amount]) => (
            <tr key={name}>
              <th scope="row"><Name text={name} /></th>
              <td><div class="bar" aria-hidden="true"><div style={{ width: `${(100 * amount) / most}%` }} /></div> {count(amount)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

export function Costly({ captures }: { captures: Entry[] }) {
  return (
    <>
      <h2>The largest captures now</h2>
      <Scrolling label="The largest captures">
        <table>
          <thead><tr><th scope="col">Captured</th><th scope="col">Tool</th><th scope="col">Session</th><th scope="col" class="figure">Size</th><th scope="col">Read</th><th scope="col">Expires</th></tr></thead>
          <tbody>
            {captures.map((each) => (
              <tr key={each.id}>
                <td><a href={link(["captures", each.id])}><Time at={each.created} /></a></td>
                <td><Name text={each.tool} /></td>
                <td>{each.session ? <a href={link(["sessions", each.session])}><Name text={each.session} /></a> : <Name text="" />}</td>
                <td class="figure">{bytes(each.size)}</td>
                <td>{each.first_read ? <Time at={each.first_read} /> : <span class="quiet">no</span>}</td>
                <td>{each.held ? "on hold" : <Time at={each.expires} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
    </>
  );
}
