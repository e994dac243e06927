// The sessions of the newest captures: who looks for what an agent did finds it here, by a part of its name or by time.
import { useEffect, useState } from "preact/hooks";
import { countOf } from "../format.ts";
import { useKeys } from "../keys.ts";
import { useRetries } from "../load.ts";
import { FirstSteps } from "../parts/first_steps.tsx";
import { Empty, Trouble, Waiting } from "../parts/states.tsx";
import { Name, Time } from "../parts/text.tsx";
import { link, setQuery, useRoute } from "../route.ts";
import { get } from "../service/api.ts";
import type { Entry, Listing } from "../service/wire.ts";
import { sessionsOf, SessionTable } from "./session_table.tsx";

/** Captures of one answer. */
const PAGE = 200;
const FIELD = "session-filter";

interface Found {
  captures: Entry[];
  cursor: string | null;
}

export function SessionsPage() {
  const part = useRoute().query.get("name") ?? "";
  const { found, problem, isLoading, more } = useCaptures();
  const sessions = sessionsOf(found?.captures ?? []).filter((each) => each.name.toLowerCase().includes(part.toLowerCase()));
  useKeys({ "/": () => document.getElementById(FIELD)?.focus() });
  return (
    <section class="list">
      <h1>Sessions</h1>
      <Search part={part} />
      {problem && <Trouble problem={problem} onRetry={more} isStale={found !== undefined} />}
      {!found && !problem && <Waiting />}
      {found && sessions.length > 0 && <SessionTable sessions={sessions} />}
      {found && sessions.length === 0 && <Nothing part={part} hasCaptures={found.captures.length > 0} />}
      {found && found.captures.length > 0 && <Reach found={found} isLoading={isLoading} onMore={more} />}
    </section>
  );
}

/** Captures from the newest on, page by page. */
function useCaptures() {
  const [found, setFound] = useState<Found>();
  const [problem, setProblem] = useState<Error>();
  const [isLoading, setLoading] = useState(false);
  const more = () => {
    setLoading(true);
    get<Listing>("captures", { limit: PAGE, cursor: found?.cursor })
      .then((next) => {
        setProblem(undefined);
        setFound({ captures: [...(found?.captures ?? []), ...next.captures], cursor: next.cursor });
      }, setProblem)
      .finally(() => setLoading(false));
  };
  useEffect(more, []);
  useRetries(problem, more);
  return { found, problem, isLoading, more };
}

function Search({ part }: { part: string }) {
  const submitted = (event: preact.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    location.hash = link(["sessions", String(new FormData(event.currentTarget).get("name")).trim()]);
  };
  return (
    <form class="filters" role="search" onSubmit={submitted}>
      <label class="small">
        Part of a name
        <input id={FIELD} name="name" required spellcheck={false} autocomplete="off" defaultValue={part} placeholder="any" onInput={(event) => setQuery({ name: event.currentTarget.value }, true)} />
      </label>
      <span class="submit"><button type="submit" class="small">Open the session of exactly this name</button></span>
    </form>
  );
}

/** How far back the list goes, and further. */
function Reach({ found, isLoading, onMore }: { found: Found; isLoading: boolean; onMore(): void }) {
  const oldest = found.captures.at(-1)!.created;
  if (!found.cursor) return <p class="quiet small pages">These are the sessions of {countOf(found.captures.length, "capture")}: all there are.</p>;
  return (
    <p class="quiet small pages">
      <span>These are the sessions of the newest {countOf(found.captures.length, "capture")}, since <Time at={oldest} />.</span>
      <button type="button" class="small" disabled={isLoading} onClick={onMore}>Look further back</button>
    </p>
  );
}

function Nothing({ part, hasCaptures }: { part: string; hasCaptures: boolean }) {
  if (!hasCaptures)
    return (
      <Empty title="No session has a capture yet">
        <p>Outputs of one conversation, or of one run, make a session: its name comes with them.</p>
        <FirstSteps what="its session appears" />
      </Empty>
    );
  return (
    <Empty title="No session fits">
      <p>None of these has “<Name text={part} />” in its name. Look further back, or open the session of exactly this name.</p>
    </Empty>
  );
}
