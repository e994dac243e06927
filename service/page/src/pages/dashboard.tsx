// What happened over time: how often outputs were too large, what that kept out of conversations, what was read back.
import { useState } from "preact/hooks";
import { type Entry, get, type Listing, type Overview, type SignedIn } from "../api.ts";
import { bytes, count, countOf, percent } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { GuardLines } from "../parts/first_steps.tsx";
import { Code, Empty, Name, Trouble, Waiting } from "../parts/small.tsx";
import { link, setQuery, useRoute } from "../route.ts";
import { AdviceOnTools } from "./advice.tsx";
import { Charts } from "./charts.tsx";
import { FixedSpan, fixedSpan, type Span } from "./span.tsx";
import { byGroup, sum, type Sums } from "./sums.ts";
import { Costly, Groups, Modes, MOST_TOOLS, Sizes, TOOLS } from "./tables.tsx";

/** Captures that are listed as the largest. */
const LARGEST = 8;
/** How often figures of a time that moves on are fetched: sooner while there are none. */
const AGAIN_MS = 60_000;
const FIRST_MS = 5_000;

const RANGES: [string, string, number][] = [
  ["1h", "hour", 3600],
  ["24h", "24 hours", 86400],
  ["7d", "7 days", 7 * 86400],
  ["30d", "30 days", 30 * 86400],
];

/** What the address says of the dashboard. */
interface Asked {
  range: [string, string, number];
  span: Span | null;
  /** The one tool, or tenant, that is shown. */
  tool: string | null;
  isFleet: boolean;
  top: number;
}

function asked(query: URLSearchParams, who: SignedIn): Asked {
  return {
    range: RANGES.find(([name]) => name === query.get("range")) ?? RANGES[1]!,
    span: fixedSpan(query),
    tool: query.get("tool"),
    isFleet: query.has("fleet") && who.scopes.includes("fleet"),
    top: query.has("all") ? MOST_TOOLS : TOOLS,
  };
}

export function Dashboard({ who }: { who: SignedIn }) {
  const view = asked(useRoute().query, who);
  const [isEmpty, setEmpty] = useState(false);
  const ticks = useTicks(view.span === null, isEmpty ? FIRST_MS : AGAIN_MS);
  const found = useLoaded(async (signal) => {
    const answer = await figures(view, signal);
    setEmpty(isNothing(sum(answer.series)));
    return answer;
  }, [JSON.stringify(view), ticks]);
  const largest = useLoaded((signal) => get<Listing>("captures", { sort: "size", limit: LARGEST }, signal), [ticks]);
  return (
    <section>
      <h1>
        {view.isFleet ? "All tenants" : `Tenant ${who.tenant}`}
        {view.tool !== null && <>, {view.isFleet ? "tenant" : "tool"} <Name text={view.tool} empty="without a name" /></>}
      </h1>
      <Choices view={view} who={who} />
      {found.problem && <Trouble problem={found.problem} />}
      {found.answer && <Figures found={found.answer} view={view} largest={largest.answer?.captures ?? []} />}
      {!found.answer && !found.problem && <Waiting />}
    </section>
  );
}

function figures({ range, span, tool, isFleet, top }: Asked, signal: AbortSignal): Promise<Overview> {
  const since = new Date(Math.floor(Date.now() / 60000) * 60000 - range[2] * 1000).toISOString();
  return get<Overview>(isFleet ? "admin/overview" : "overview", { since, ...span, tool, top }, signal);
}

function isNothing(total: Sums): boolean {
  return total.outputs === 0 && total.captures === 0;
}

function Choices({ view: { range, span, tool, isFleet }, who }: { view: Asked; who: SignedIn }) {
  return (
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
      {tool !== null && <button type="button" class="small" onClick={() => setQuery({ tool: null })}>all {isFleet ? "tenants" : "tools"}</button>}
      {!isFleet && tool && <a class="small" href={link(["captures"], { tool })}>its captures</a>}
    </nav>
  );
}

function Figures({ found, view: { isFleet, tool }, largest }: { found: Overview; view: Asked; largest: Entry[] }) {
  const total = sum(found.series);
  if (isNothing(total)) return <NothingYet />;
  return (
    <>
      <Since found={found} />
      <Cards total={total} />
      <Charts found={found} />
      <Groups groups={byGroup(found.tools, isFleet ? "tenant" : "tool")} kind={isFleet ? "Tenant" : "Tool"} />
      {!isFleet && <AdviceOnTools advice={found.advice} />}
      <Sizes rows={found.series} />
      <Modes rows={found.series} />
      {!isFleet && tool === null && largest.length > 0 && <Costly captures={largest} />}
    </>
  );
}

/** Of which time the figures are. */
function Since({ found }: { found: Overview }) {
  return (
    <p class="quiet">
      From <time dateTime={found.since} title={found.since}>{new Date(found.since).toLocaleString()}</time> to{" "}
      <time dateTime={found.until} title={found.until}>{new Date(found.until).toLocaleString()}</time>, in steps of {stepName(found.step)}.
      Captures and reads follow within about five seconds.
    </p>
  );
}

function Cards({ total }: { total: Sums }) {
  return (
    <div class="cards">
      <Card title="Outputs too large" value={percent(total.spilled, total.outputs)} note={`${count(total.spilled)} of ${countOf(total.outputs, "output")}`} />
      <Card title="Kept out of conversations" value={bytes(Math.max(0, total.bytes - total.kept))} note={`about ${count(total.tokens)} tokens`} />
      <Card title="Captures read back" value={percent(total.read, total.captures)} note={`${count(total.read)} of ${countOf(total.captures, "capture")}, ${countOf(total.reads, "read")}`} />
      <Card title="Run again after a notice" value={percent(total.bursts, total.spilled)} note={`${countOf(total.bursts, "burst")} of calls of the same tool`} />
    </div>
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

function NothingYet() {
  return (
    <Empty title="Nothing happened in this time">
      <GuardLines what="its figures appear" />
      <p>Without code, in front of any MCP server:</p>
      <Code label="Guard an MCP server" text="overspill mcp-proxy -- npx some-mcp-server" />
    </Empty>
  );
}
