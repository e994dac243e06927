// The terminals and commands whose output is stored while they run. Each opens the output that follows as it grows.
import { count } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { Choice } from "../parts/boxes.tsx";
import { Code } from "../parts/copy.tsx";
import { Empty, Shown } from "../parts/states.tsx";
import { link, useRoute } from "../route.ts";
import { get } from "../service/api.ts";
import type { Entry, Listing, SignedIn } from "../service/wire.ts";
import { TERMINAL_LABEL } from "../viewer/text.ts";
import { WhichSession } from "./own_sessions.tsx";
import { TerminalTable } from "./terminal_table.tsx";

/** Captures of one answer, and answers that are looked through for terminals. */
const PAGE = 200;
const PAGES = 5;
const OFTEN_MS = 5_000;
const SELDOM_MS = 20_000;

interface Found {
  terminals: Entry[];
  /** Whether captures are left that nobody looked at. */
  isCut: boolean;
  isIncomplete: boolean;
}

export function TerminalsPage({ who }: { who: SignedIn }) {
  const isAll = useRoute().query.has("all");
  const ticks = useTicks(!who.is_prefix, isAll ? SELDOM_MS : OFTEN_MS);
  const found = useLoaded((signal) => (who.is_prefix ? Promise.resolve(undefined) : terminals(isAll, signal)), [isAll, ticks]);
  return (
    <section class="list">
      <header class="title">
        <h1>Terminals</h1>
        <Choice
          label="Which"
          options={[["live", "Live"], ["all", "All"]]}
          chosen={isAll ? "all" : "live"}
          onChoose={(which) => (location.hash = link(["terminals"], which === "all" ? { all: 1 } : {}))}
        />
      </header>
      {who.is_prefix ? <WhichSession prefix={who.session ?? ""} /> : <Shown of={found}>{(answer) => answer && <Listed found={answer} isAll={isAll} />}</Shown>}
    </section>
  );
}

/** Return the terminals among the newest captures, the one that was started last first. */
async function terminals(isAll: boolean, signal: AbortSignal): Promise<Found> {
  const found: Found = { terminals: [], isCut: false, isIncomplete: false };
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page += 1) {
    const listing: Listing = await get<Listing>("captures", { state: isAll ? null : "live", limit: PAGE, cursor }, signal);
    found.terminals.push(...listing.captures.filter(({ labels }) => TERMINAL_LABEL in labels));
    found.isIncomplete ||= listing.incomplete;
    cursor = listing.cursor;
    if (!cursor) return found;
  }
  return { ...found, isCut: true };
}

function Listed({ found: { terminals: shown, isCut, isIncomplete }, isAll }: { found: Found; isAll: boolean }) {
  return (
    <>
      {isIncomplete && <p class="notice" role="status">The catalog is being rebuilt: terminals may be missing for a while.</p>}
      {shown.length > 0 ? <TerminalTable terminals={shown} /> : <NoTerminal isAll={isAll} />}
      {isCut && <p class="quiet small pages">Only the newest {count(PAGE * PAGES)} {isAll ? "captures" : "live captures"} were looked at.</p>}
    </>
  );
}

function NoTerminal({ isAll }: { isAll: boolean }) {
  return (
    <Empty title={isAll ? "There is no terminal yet" : "No terminal is live"}>
      <p>A terminal that somebody shares, or a command that runs for long, is listed here. Its output is read while it grows.</p>
      <div class="first-steps">
        <div>
          <h3>A shell</h3>
          <p>Work in it as always. Each command can be found by its name:</p>
          <Code label="Share a shell" text="overspill shell --name work" />
        </div>
        <div>
          <h3>One command</h3>
          <p>Its output is stored as it comes:</p>
          <Code label="Run a command" text="overspill run -- make test" />
        </div>
        <div>
          <h3>A pane of tmux, or any pipe</h3>
          <p>It gets the name that you give it:</p>
          <Code label="Share a pane of tmux" text="tmux pipe-pane -o 'overspill put --live --name build'" />
        </div>
      </div>
      {!isAll && <p><a class="button" href={link(["terminals"], { all: 1 })}>Those that have ended</a></p>}
    </Empty>
  );
}
