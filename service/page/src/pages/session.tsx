// One session: its calls in the order of time, with their outcomes and sizes, as its agent made them.
import { useEffect, useState } from "preact/hooks";
import { type Entry, get, type Listing } from "../api.ts";
import { bytes, countOf, lineCount } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { Clock, Empty, Name, Outcome, Time, Trouble, Waiting } from "../parts/small.tsx";
import { link } from "../route.ts";

const FIRST = 200;
const MOST = 1000;

export function SessionPage({ session }: { session: string }) {
  const [limit, setLimit] = useState(FIRST);
  const [hasLive, setLive] = useState(false);
  const found = useLoaded((signal) => get<Listing>("captures", { session, limit }, signal), [session, limit, useTicks(hasLive)]);
  useEffect(() => setLive(!!found.answer?.captures.some((each) => each.state === "live")), [found.answer]);
  if (found.problem) return <Trouble problem={found.problem} />;
  if (!found.answer) return <Waiting />;
  const captures = [...found.answer.captures].reverse();
  if (captures.length === 0) return <NoCaptures session={session} />;
  return (
    <section>
      <h1>Session <Name text={session} /></h1>
      <Span captures={captures} />
      {found.answer.cursor && limit < MOST && <p><button type="button" class="small" onClick={() => setLimit(MOST)}>Show older ones too</button></p>}
      <Timeline captures={captures} />
    </section>
  );
}

function NoCaptures({ session }: { session: string }) {
  return (
    <Empty isPage title="This session has no captures">
      <p>Those of <Name text={session} /> have expired or were deleted, or every output of it was small.</p>
      <p><a href={link(["sessions"])}>All sessions</a> <a href={link(["captures"])}>All captures</a></p>
    </Empty>
  );
}

function Span({ captures }: { captures: Entry[] }) {
  const size = captures.reduce((sum, each) => sum + each.size, 0);
  return (
    <p class="quiet">
      {countOf(captures.length, "captured output")}, {bytes(size)}, from <Clock at={captures[0]!.created} /> to <Clock at={captures.at(-1)!.created} />.
      What was small enough stayed in the conversation, and is not here.
    </p>
  );
}

/** The calls from the first to the last, a bar for each as long as its output. */
function Timeline({ captures }: { captures: Entry[] }) {
  const largest = Math.max(1, ...captures.map((each) => each.size));
  return (
    <ol class="timeline">
      {captures.map((each) => <Call key={each.id} entry={each} share={each.size / largest} />)}
    </ol>
  );
}

function Call({ entry, share }: { entry: Entry; share: number }) {
  return (
    <li>
      <span class="what">
        <a href={link(["captures", entry.id])}>
          <Clock at={entry.created} /> <Name text={entry.tool} empty="a tool without a name" />
        </a>{" "}
        <span class="quiet small"><Name text={entry.call_id} empty="" /></span> <Outcome entry={entry} empty="" />
      </span>
      <span class="bar"><span style={{ width: `${Math.max(0.5, 100 * share)}%` }} /></span>
      <span class="small quiet">
        {bytes(entry.size)}{entry.state === "live" ? "" : `, ${lineCount(entry.lines)}`}
        {entry.first_read ? <>, read <Time at={entry.first_read} /></> : ", not read"}
        {entry.held ? ", on hold" : <>, expires <Time at={entry.expires} /></>}
      </span>
    </li>
  );
}
