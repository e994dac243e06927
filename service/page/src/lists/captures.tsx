// The list of captures, with filters in the address.
import { useEffect, useState } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { useLoaded, useTicks } from "../load.ts";
import { FirstSteps } from "../parts/first_steps.tsx";
import { Choice } from "../parts/boxes.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { fixedSpan, rangeOf, sinceOf } from "../ranges.ts";
import { link, setQuery, useRoute } from "../route.ts";
import { get } from "../service/api.ts";
import type { Listing, SignedIn } from "../service/wire.ts";
import { CaptureTable } from "./capture_table.tsx";
import { WhichSession } from "./own_sessions.tsx";
import { Filters, FIRST_FILTER, isFiltered } from "./filters.tsx";

const PAGE = 50;
/** The largest come as one page: the service has no cursor for them. */
const LARGEST = 200;

const NOTHING: Listing = { captures: [], cursor: null, incomplete: false };

/** What the address asks the service for. A filter must be equal, but for the time. */
function askedFor(query: URLSearchParams) {
  if (query.has("largest") && !isFiltered(query)) return { sort: "size", limit: LARGEST };
  const [tool, session, call_id, state, cursor] = ["tool", "session", "call", "state", "cursor"].map((name) => query.get(name));
  const range = rangeOf(query);
  const time = fixedSpan(query) ?? (range ? { since: sinceOf(range) } : {});
  return { tool, session, call_id, state, cursor, ...time, limit: PAGE };
}

export function CapturesPage({ who }: { who: SignedIn }) {
  const { query } = useRoute();
  const [hasLive, setLive] = useState(false);
  const isUnnamed = who.is_prefix && !query.get("session");
  const found = useLoaded(
    (signal) => (isUnnamed ? Promise.resolve(NOTHING) : get<Listing>("captures", askedFor(query), signal)),
    [query.toString(), useTicks(hasLive)],
  );
  useEffect(() => setLive(query.get("state") === "live" || !!found.answer?.captures.some((each) => each.state === "live")), [found.answer, query.get("state")]);
  useKeys({ "/": () => document.getElementById(FIRST_FILTER)?.focus() });
  const isBySize = query.has("largest") && !isFiltered(query);
  return (
    <section class="list">
      <header class="title">
        <h1>Captures</h1>
        <Choice
          label="Order"
          options={[["new", "Newest first"], ["size", "Largest first"]]}
          chosen={isBySize ? "size" : "new"}
          onChoose={(order) => (location.hash = order === "size" ? link(["captures"], { largest: 1 }) : link(["captures"]))}
        />
        <OpenHandle />
      </header>
      <Filters query={query} tools={found.answer?.captures.map((each) => each.tool) ?? []} key={query.toString()} />
      <div class={found.isLoading ? "is-loading" : ""} aria-busy={found.isLoading}>
        {isUnnamed && <WhichSession prefix={who.session ?? ""} />}
        {!isUnnamed && <Shown of={found}>{(listing) => <Found listing={listing} query={query} />}</Shown>}
      </div>
    </section>
  );
}

/** Who has a handle goes to its output. */
function OpenHandle() {
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const handle = String(new FormData(event.currentTarget).get("handle")).trim();
    if (handle) location.hash = link(["captures", handle]);
  };
  return (
    <form class="handle" onSubmit={submitted}>
      <label class="small">
        Handle <input name="handle" placeholder="cap_… or call:…" required spellcheck={false} autocomplete="off" />
      </label>
      <button type="submit" class="small">Open</button>
    </form>
  );
}

function Found({ listing: { captures, cursor, incomplete }, query }: { listing: Listing; query: URLSearchParams }) {
  if (captures.length === 0) return isFiltered(query) ? <NothingFits /> : <FirstCapture />;
  return (
    <>
      {incomplete && <p class="notice" role="status">The catalog is being rebuilt: captures may be missing for a while.</p>}
      <CaptureTable captures={captures} />
      <p class="pages">
        {query.has("cursor") && <a class="button small" href={link(["captures"], { ...Object.fromEntries(query), cursor: null })}>⇤ Newest</a>}
        {cursor && <button type="button" class="small" onClick={() => setQuery({ cursor })}>Older captures →</button>}
      </p>
    </>
  );
}

function NothingFits() {
  return (
    <Empty title="No capture fits">
      <p>It may have expired, or a filter is too narrow. A filter must be equal, capitals included.</p>
      <p><a class="button" href={link(["captures"])}>All captures</a></p>
    </Empty>
  );
}

function FirstCapture() {
  return (
    <Empty title="Nothing is captured yet">
      <p>What is too large for a conversation is kept, and listed here until it expires.</p>
      <FirstSteps what="their large outputs appear" />
    </Empty>
  );
}
