// Which time, which tenants and which tool the dashboard shows.
import { Choice } from "../parts/boxes.tsx";
import { Copy } from "../parts/copy.tsx";
import { Name } from "../parts/text.tsx";
import { exact, minute } from "../format.ts";
import { type Range, RANGES, sinceOf, timeOf, wordsOf } from "../ranges.ts";
import { link, setQuery, useRoute } from "../route.ts";
import { now } from "../service/clock.ts";
import type { Overview, SignedIn } from "../service/wire.ts";
import type { Asked } from "./asked.ts";
import { FixedSpan } from "./span.tsx";

export function Controls({ view: { range, span, tool, isFleet }, who }: { view: Asked; who: SignedIn }) {
  const { query } = useRoute();
  const kind = isFleet ? "tenants" : "tools";
  return (
    <div class="tools">
      <Choice label="Time" options={RANGES} chosen={span ? null : range} onChoose={(name) => setQuery({ range: name, since: null, until: null })} />
      <FixedSpan span={span} range={range} />
      {!span && <Copy text={() => Promise.resolve(linkTo(range))} label="Copy link to this time" title="A link that shows these very figures later too" />}
      {who.scopes.includes("fleet") && (
        <Choice
          label="Tenants"
          options={[["one", `Tenant ${who.tenant}`], ["all", "By tenant"]]}
          chosen={isFleet ? "all" : "one"}
          onChoose={(which) => setQuery({ fleet: which === "all" ? 1 : null, tool: null })}
        />
      )}
      {tool !== null && (
        <button type="button" class="small chip" onClick={() => setQuery({ tool: null })} title={`All ${kind}`}>
          <span class="unseen">Not only </span><Name text={tool} empty="without a name" /> <span aria-hidden="true">✕</span>
        </button>
      )}
      {!isFleet && tool && <a class="small" href={link(["captures"], { tool, ...timeOf(query), range: query.get("since") ? null : range })}>Its captures</a>}
    </div>
  );
}

/** Of which time the figures are. */
export function Since({ found, view: { range, span } }: { found: Overview; view: Asked }) {
  const first = found.series.reduce((least, { start }) => (start < least ? start : least), found.until);
  return (
    <p class="since quiet small">
      {span ? "From" : `In ${wordsOf(range)}, since`} <Instant at={found.since} />{span && <> to <Instant at={found.until} /></>}, by {stepName(found.step)}
      {first > found.since && <>; the first of these figures are of <Instant at={first} /></>}.
      Captures and reads follow within about five seconds.
    </p>
  );
}

function Instant({ at }: { at: string }) {
  return <time dateTime={at} title={exact(at)}>{minute(at)}</time>;
}

/** A link that keeps showing the time that a range means now. */
function linkTo(range: Range): string {
  const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
  query.delete("range");
  query.set("since", sinceOf(range));
  query.set("until", new Date(now()).toISOString());
  return `${location.href.split("#")[0]}${link([], Object.fromEntries(query))}`;
}

function stepName(seconds: number): string {
  return { 60: "minute", 900: "15 minutes", 86400: "day (UTC)" }[seconds] ?? `${seconds} s`;
}
