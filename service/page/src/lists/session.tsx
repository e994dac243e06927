// One session: its calls in the order of time, with their outcomes and sizes, as its agent made them.
import { useEffect, useState } from "preact/hooks";
import { bytes, countOf, duration } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { Empty, Shown } from "../parts/states.tsx";
import { Clock, Name, StatePill } from "../parts/text.tsx";
import { link } from "../route.ts";
import { get } from "../service/api.ts";
import type { Entry, Listing } from "../service/wire.ts";
import { Call } from "./call.tsx";

/** Calls that are shown at first, and that are added at once. */
const PAGE = 200;
/** Captures of one answer, at most. */
const MOST = 1000;

export function SessionPage({ session }: { session: string }) {
  const [limit, setLimit] = useState(PAGE);
  const [hasLive, setLive] = useState(false);
  const found = useLoaded((signal) => newest(session, limit, signal), [session, limit, useTicks(hasLive)]);
  useEffect(() => setLive(!!found.answer?.captures.some((each) => each.state === "live")), [found.answer]);
  return (
    <Shown of={found}>
      {({ captures, cursor }) => {
        const calls = [...captures].reverse();
        if (calls.length === 0) return <NoCaptures session={session} />;
        return (
          <section class="list">
            <h1>Session <Name text={session} /> {hasLive && <StatePill state="live" />}</h1>
            <Facts session={session} calls={calls} isAll={cursor === null} />
            {cursor && <p><button type="button" class="small" disabled={found.isLoading} onClick={() => setLimit(limit + PAGE)}>Show older ones too</button></p>}
            <Timeline calls={calls} />
          </section>
        );
      }}
    </Shown>
  );
}

/** Return the newest captures of a session, in as many answers as that takes. */
async function newest(session: string, limit: number, signal: AbortSignal): Promise<Listing> {
  const all: Listing = { captures: [], cursor: null, incomplete: false };
  do {
    const asked = { session, limit: Math.min(MOST, limit - all.captures.length), cursor: all.cursor };
    const page = await get<Listing>("captures", asked, signal);
    all.captures.push(...page.captures);
    all.cursor = page.cursor;
  } while (all.cursor && all.captures.length < limit);
  return all;
}

function NoCaptures({ session }: { session: string }) {
  return (
    <Empty isPage title="This session has no captures">
      <p>Those of <Name text={session} /> have expired or were deleted, or every output of it was small.</p>
      <p class="actions"><a class="button" href={link(["sessions"])}>All sessions</a> <a class="button" href={link(["captures"])}>All captures</a></p>
    </Empty>
  );
}

function Facts({ session, calls, isAll }: { session: string; calls: Entry[]; isAll: boolean }) {
  const size = calls.reduce((sum, each) => sum + each.size, 0);
  const read = calls.filter((each) => each.first_read).length;
  const [first, last] = [calls[0]!.created, calls.at(-1)!.created];
  return (
    <>
      <p class="facts-line">
        <span>{isAll ? "" : "The newest "}{countOf(calls.length, "captured output")}</span>
        <span>{bytes(size)}</span>
        <span>{read === 0 ? "none read back" : `${read} read back`}</span>
        <span><Clock at={first} /> to <Clock at={last} />, {duration((Date.parse(last) - Date.parse(first)) / 1000)}</span>
        <a class="small" href={link(["captures"], { session })}>As a list</a>
      </p>
      <p class="quiet small">What was small enough stayed in the conversation, and is not here.</p>
    </>
  );
}

/** The calls from the first to the last, a bar for each as long as its output. */
function Timeline({ calls }: { calls: Entry[] }) {
  const largest = Math.max(1, ...calls.map((each) => each.size));
  const start = Date.parse(calls[0]!.created);
  return (
    <ol class="timeline">
      {calls.map((each) => <Call key={each.id} entry={each} share={each.size / largest} start={start} />)}
    </ol>
  );
}
