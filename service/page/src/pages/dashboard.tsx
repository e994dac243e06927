// What happened over time: how often outputs were too large, what that kept out of conversations, what was read back.
import { useEffect, useRef } from "preact/hooks";
import { type Entry, get, type Listing, type Overview, type SignedIn, type StatsRow } from "../api.ts";
import { bytes, count, countOf, percent } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Empty, Name, Time, Trouble, Waiting } from "../parts/small.tsx";
import { link, setQuery, useRoute } from "../route.ts";
import { AdviceOnTools } from "./advice.tsx";
import { FixedSpan, fixedSpan, zoom } from "./span.tsx";
import { byGroup, byMode, bySize, type Group, OTHER, overTime, sum } from "./sums.ts";

/** How many tools are told apart: at first, and at most. */
const TOOLS = 25;
const MOST_TOOLS = 200;
/** Captures that are listed as the largest. */
const LARGEST = 8;

const RANGES: [string, string, number][] = [
  ["1h", "hour", 3600],
  ["24h", "24 hours", 86400],
  ["7d", "7 days", 7 * 86400],
  ["30d", "30 days", 30 * 86400],
];

export function Dashboard({ who }: { who: SignedIn }) {
  const { query } = useRoute();
  const range = RANGES.find(([name]) => name === query.get("range")) ?? RANGES[1]!;
  const span = fixedSpan(query);
  const tool = query.get("tool");
  const isFleet = query.has("fleet") && who.scopes.includes("fleet");
  const path = isFleet ? "admin/overview" : "overview";
  const top = query.has("all") ? MOST_TOOLS : TOOLS;
  const asked = { ...(span ?? { since: null }), tool, top };
  const since = new Date(Math.floor(Date.now() / 60000) * 60000 - range[2] * 1000).toISOString();
  const found = useLoaded((signal) => get<Overview>(path, { ...asked, since: span?.since ?? since }, signal), [path, range[0], JSON.stringify(asked)]);
  const largest = useLoaded((signal) => get<Listing>("captures", { sort: "size", limit: LARGEST }, signal), []);
  return (
    <section>
      <h1>
        {isFleet ? "All tenants" : `Tenant ${who.tenant}`}
        {tool !== null && <>, {isFleet ? "tenant" : "tool"} <Name text={tool} empty="without a name" /></>}
      </h1>
      <nav class="tools" aria-label="Time and scope">
        {RANGES.map(([name, label]) => (
          <button type="button" class="small toggle" aria-pressed={!span && name === range[0]} onClick={() => setQuery({ range: name, since: null, until: null })}>
            {label}
          </button>
        ))}
        <FixedSpan span={span} />
        {who.scopes.includes("fleet") && (
          <button type="button" class="small toggle" aria-pressed={isFleet} onClick={() => setQuery({ fleet: isFleet ? null : 1, tool: null })}>
            by tenant
          </button>
        )}
        {tool !== null && (
          <>
            <button type="button" class="small" onClick={() => setQuery({ tool: null })}>all {isFleet ? "tenants" : "tools"}</button>
            {!isFleet && tool && <a class="small" href={link(["captures"], { tool })}>its captures</a>}
          </>
        )}
      </nav>
      {found.problem && <Trouble problem={found.problem} />}
      {found.answer ? (
        <Figures found={found.answer} isFleet={isFleet} isAll={tool === null} largest={largest.answer?.captures ?? []} />
      ) : (
        !found.problem && <Waiting />
      )}
    </section>
  );
}

function Figures({ found, isFleet, isAll, largest }: { found: Overview; isFleet: boolean; isAll: boolean; largest: Entry[] }) {
  const total = sum(found.series);
  if (total.outputs === 0 && total.captures === 0) return <NothingYet />;
  const groups = byGroup(found.tools, isFleet ? "tenant" : "tool");
  return (
    <>
      <p class="quiet">
        From <time dateTime={found.since} title={found.since}>{new Date(found.since).toLocaleString()}</time> to{" "}
        <time dateTime={found.until} title={found.until}>{new Date(found.until).toLocaleString()}</time>, in steps of {stepName(found.step)}.
        Captures and reads follow within about five seconds.
      </p>
      <div class="cards">
        <Card title="Outputs too large" value={percent(total.spilled, total.outputs)} note={`${count(total.spilled)} of ${countOf(total.outputs, "output")}`} />
        <Card title="Kept out of conversations" value={bytes(Math.max(0, total.bytes - total.kept))} note={`about ${count(total.tokens)} tokens`} />
        <Card title="Captures read back" value={percent(total.read, total.captures)} note={`${count(total.read)} of ${countOf(total.captures, "capture")}, ${countOf(total.reads, "read")}`} />
        <Card title="Run again after a notice" value={percent(total.bursts, total.spilled)} note={`${countOf(total.bursts, "burst")} of calls of the same tool`} />
      </div>
      <Charts found={found} />
      <Groups groups={groups} kind={isFleet ? "Tenant" : "Tool"} />
      {!isFleet && <AdviceOnTools advice={found.advice} />}
      <Sizes rows={found.series} />
      <Modes rows={found.series} />
      {!isFleet && isAll && largest.length > 0 && <Costly captures={largest} />}
    </>
  );
}

function stepName(seconds: number): string {
  return { 60: "a minute", 900: "15 minutes", 86400: "a day (UTC)" }[seconds] ?? `${seconds} s`;
}

function Card({ title, value, note }: { title: string; value: string; note: string }) {
  return (
    <div class="card">
      <h2>{title}</h2>
      <p class="value">{value}</p>
      <p class="quiet small">{note}</p>
    </div>
  );
}

/** Draw two series over time. The library for charts comes once the figures are shown. */
function Charts({ found }: { found: Overview }) {
  const points = overTime(found);
  const rate = points.map((point) => (point.outputs ? (100 * point.spilled) / point.outputs : null));
  const kept = points.map((point) => Math.max(0, point.bytes - point.kept));
  const times = points.map((point) => point.start);
  return (
    <>
      <div class="charts">
        <Chart title="Outputs too large, in percent" unit="%" times={times} values={rate} />
        <Chart title="Bytes kept out of conversations" unit="B" times={times} values={kept} />
      </div>
      <details>
        <summary>These charts as a table</summary>
        <div class="scrolling short">
          <table>
            <thead>
              <tr><th scope="col">From</th><th scope="col" class="figure">Outputs</th><th scope="col" class="figure">Too large</th><th scope="col" class="figure">Share</th><th scope="col" class="figure">Kept out</th><th scope="col" class="figure">Captures</th><th scope="col" class="figure">Read back</th><th scope="col" class="figure">Run again</th></tr>
            </thead>
            <tbody>
              {points.filter((point) => point.outputs || point.captures).reverse().map((point) => (
                <tr key={point.start}>
                  <td>{new Date(point.start * 1000).toLocaleString()}</td>
                  <td class="figure">{count(point.outputs)}</td>
                  <td class="figure">{count(point.spilled)}</td>
                  <td class="figure">{percent(point.spilled, point.outputs)}</td>
                  <td class="figure">{bytes(Math.max(0, point.bytes - point.kept))}</td>
                  <td class="figure">{count(point.captures)}</td>
                  <td class="figure">{count(point.read)}</td>
                  <td class="figure">{count(point.bursts)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function Chart({ title, unit, times, values }: { title: string; unit: string; times: number[]; values: (number | null)[] }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let close = (): void => undefined;
    let isOver = false;
    void import("../parts/chart.ts").then(({ draw }) => {
      if (!isOver && place.current) close = draw(place.current, times, values, unit, zoom);
    });
    return () => {
      isOver = true;
      close();
    };
  }, [times.join(), values.join(), unit]);
  const known = values.filter((value) => value !== null);
  const shown = (value: number) => (unit === "B" ? bytes(value) : `${value.toFixed(1)} %`);
  const text = known.length ? `from ${shown(Math.min(...known))} to ${shown(Math.max(...known))}` : "no values";
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div ref={place} class="chart" role="img" aria-label={`${title}: ${text}`} />
    </figure>
  );
}

function Groups({ groups, kind }: { groups: Group[]; kind: string }) {
  return (
    <>
      <h2>By {kind.toLowerCase()}</h2>
      <div class="scrolling">
        <table>
          <thead>
            <tr>
              <th scope="col">{kind}</th><th scope="col" class="figure">Outputs</th><th scope="col" class="figure">Too large</th>
              <th scope="col" class="figure">Share</th><th scope="col" class="figure">Kept out</th><th scope="col" class="figure">Tokens</th>
              <th scope="col" class="figure">Captures</th><th scope="col" class="figure">Read back</th><th scope="col" class="figure">Run again</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((each) => (
              <tr key={each.name}>
                <td><GroupName name={each.name} kind={kind} /></td>
                <td class="figure">{count(each.outputs)}</td>
                <td class="figure">{count(each.spilled)}</td>
                <td class="figure">{percent(each.spilled, each.outputs)}</td>
                <td class="figure">{bytes(Math.max(0, each.bytes - each.kept))}</td>
                <td class="figure">{count(each.tokens)}</td>
                <td class="figure">{count(each.captures)}</td>
                <td class="figure">{percent(each.read, each.captures)}</td>
                <td class="figure">{count(each.bursts)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {groups.some((each) => each.name === OTHER) && groups.length <= MOST_TOOLS && (
        <p><button type="button" class="small" onClick={() => setQuery({ all: 1 })}>Tell more {kind.toLowerCase()}s apart</button></p>
      )}
    </>
  );
}

function GroupName({ name, kind }: { name: string; kind: string }) {
  if (name === OTHER) return <span class="quiet">all other {kind.toLowerCase()}s</span>;
  const { query } = useRoute();
  if (!name) return <Name text="" empty="without a name" />;
  return <a href={link([], { ...Object.fromEntries(query), tool: name })} title={`Only this ${kind.toLowerCase()}`}><Name text={name} /></a>;
}

function Sizes({ rows }: { rows: StatsRow[] }) {
  const name = (bound: number) => (bound === Infinity ? "larger" : `up to ${bytes(bound)}`);
  return <Bars title="Sizes of captures" of="Size" what="Captures" bars={bySize(rows).map((each) => [name(each.bound), each.captures])} />;
}

function Modes({ rows }: { rows: StatsRow[] }) {
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

function Costly({ captures }: { captures: Entry[] }) {
  return (
    <>
      <h2>The largest captures now</h2>
      <div class="scrolling">
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
      </div>
    </>
  );
}

function NothingYet() {
  return (
    <Empty title="Nothing happened in this time">
      <p>Guard the tools of an agent, and its figures appear here:</p>
      <pre>{`from overspill import Client, Guard

async with Client() as client, Guard(client, session="run-42") as guard:
    shown = await guard.process(output, tool="pytest")`}</pre>
      <p>Without code, in front of any MCP server:</p>
      <pre>overspill mcp-proxy -- npx some-mcp-server</pre>
    </Empty>
  );
}
