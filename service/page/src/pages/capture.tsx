// One capture: its facts, what may be changed, and its output.
import { useState } from "preact/hooks";
import { address, change, type Entry, get, pathOf, Problem, type SignedIn } from "../api.ts";
import { bytes, count, lineCount } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Confirm, Copy, Empty, Name, Time, Trouble, Waiting } from "../parts/small.tsx";
import { link } from "../route.ts";
import { useGrowth } from "../viewer/growth.ts";
import { SEEN_LABEL } from "../viewer/seen.ts";
import { TERMINAL_LABEL, visible } from "../viewer/text.ts";
import { Structured } from "./json.tsx";
import { Output } from "./output.tsx";

/** Labels that the client sets, as people read them. */
const LABELS: Record<string, string> = {
  "overspill.preview": "Preview strategy",
  "overspill.spooled": "Spooled",
  "overspill.redacted": "Redacted",
  "overspill.cohort": "Cohort",
  "overspill.exit_code": "Exit code",
  "overspill.command": "Command",
  "overspill.terminal_size": "Terminal size",
  [TERMINAL_LABEL]: "Terminal",
};
/** Bytes of JSON that are shown as a tree at once. */
const MAX_OPENED = 100_000;

export function CapturePage({ reference, who }: { reference: string; who: SignedIn }) {
  const [version, setVersion] = useState(0);
  const [isShown, setShown] = useState(false);
  const entry = useLoaded((signal) => get<Entry>(pathOf(reference), {}, signal), [reference, version]);
  useGrowth(entry.answer, () => setVersion((before) => before + 1));
  if (entry.problem && (!entry.answer || isGone(entry.problem))) return <Missing problem={entry.problem} />;
  if (!entry.answer) return <Waiting />;
  return (
    <article class="capture">
      <Facts entry={entry.answer} who={who} onChanged={() => setVersion(version + 1)} />
      {isStructured(entry.answer) && (
        <details class="as-data" open={isOneLine(entry.answer)} onToggle={(event) => setShown(event.currentTarget.open)}>
          <summary>As a tree or a table</summary>
          {isShown && <Structured entry={entry.answer} />}
        </details>
      )}
      <Output entry={entry.answer} />
    </article>
  );
}

function isGone(problem: Error): boolean {
  return problem instanceof Problem && (problem.status === 404 || problem.status === 410);
}

/** What to do next if a capture is not there, or not any more. */
function Missing({ problem }: { problem: Error }) {
  if (!(problem instanceof Problem) || !isGone(problem)) return <Trouble problem={problem} />;
  return (
    <Empty isPage title={problem.status === 410 ? "This output is gone" : "There is no such output here"}>
      <p>
        {problem.status === 410
          ? "It has expired, or somebody has deleted it. Its bytes are not kept any longer."
          : "The handle may have a typing error, or its output belongs to another tenant or session, or expired long ago."}
      </p>
      <p><a href={link(["captures"])}>All captures</a></p>
    </Empty>
  );
}

/** Whether nobody can read the lines: a small JSON document in one line. */
function isOneLine(entry: Entry): boolean {
  return entry.kind === "json" && entry.lines === 1 && entry.size <= MAX_OPENED;
}

/** Whether the output may be shown as data. It is looked at only when somebody asks for that. */
function isStructured(entry: Entry): boolean {
  return entry.kind === "json" || /json|csv|ndjson/.test(entry.content_type);
}

function Facts({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  return (
    <header class="facts">
      <h1>
        <Name text={entry.tool} empty="a tool without a name" /> <span class={`state ${entry.state}`}>{entry.state}</span>
        {entry.held && <span class="state">on hold</span>}
      </h1>
      <dl>
        <Fact term="Session">
          {entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" empty="none" />}
        </Fact>
        <Fact term="Call"><Name text={entry.call_id} /></Fact>
        <Fact term="Status"><Name text={entry.status} /></Fact>
        <Fact term="Size">{bytes(entry.size)}, {lineCount(entry.lines)}</Fact>
        {entry.state !== "live" && <Fact term="Stored">{bytes(entry.stored_size)}{ratio(entry)}</Fact>}
        <Fact term={entry.state === "live" ? "Began" : "Captured"}><Time at={entry.created} /></Fact>
        {entry.last_append && <Fact term="Last output"><Time at={entry.last_append} /></Fact>}
        {entry.gap && <Fact term="Missing at the end">from byte {count(entry.gap.offset)} on: {entry.gap.size === null ? "perhaps something, nobody knows how much" : bytes(entry.gap.size)}</Fact>}
        <Fact term="Expires">{entry.held ? "not before it is released" : <Time at={entry.expires} />}</Fact>
        <Fact term="First read"><FirstRead entry={entry} /></Fact>
        {Object.entries(entry.labels).filter(([name]) => name !== SEEN_LABEL).map(([name, value]) => (
          <Fact term={LABELS[name] ?? name}><Name text={value} /></Fact>
        ))}
      </dl>
      <p class="actions">
        <Copy text={entry.id} label="Copy handle" />
        <Copy text={`overspill tail ${entry.id}`} label="Copy command" />
        <Copy text={`client.content("${entry.id}")`} label="Copy code" />
        <a class="button small" href={address(`${pathOf(entry.id)}/content`)} download={`${entry.id}.txt`}>Download</a>
        <Changes entry={entry} who={who} onChanged={onChanged} />
      </p>
    </header>
  );
}

const READS_HELP = "Reads on this page do not count. Every read, and by whom, is in the audit log, if the operator keeps one.";

function FirstRead({ entry: { first_read: at, first_reader: reader } }: { entry: Entry }) {
  if (!at) return <span title={READS_HELP}>not yet</span>;
  return <><Time at={at} /> {reader && <span class="quiet small" title={READS_HELP}>by key <Name text={reader} /></span>}</>;
}

/** Return how much smaller the output is as it is stored. */
function ratio({ size, stored_size: stored }: Entry): string {
  if (stored === 0 || stored >= size) return "";
  return `, ${size < 100 * stored ? (size / stored).toFixed(1) : count(Math.round(size / stored))} times smaller`;
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{visible(term)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What changes a capture, for those who may. */
function Changes({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const [problem, setProblem] = useState<Error>();
  const [isAsking, setAsking] = useState(false);
  const attempt = (work: Promise<unknown>, then: () => void) => void work.then(then, setProblem);
  const remove = () => attempt(change("DELETE", pathOf(entry.id)), () => (location.hash = link(["captures"])));
  const keep = (days: number) => attempt(change("PATCH", pathOf(entry.id), { ttl: days * 86400 }), onChanged);
  return (
    <>
      {who.scopes.includes("write") && !entry.held && (
        <label class="small">
          Keep for{" "}
          <select value="" onChange={(event) => keep(Number(event.currentTarget.value))}>
            <option value="" disabled>choose</option>
            <option value="1">1 day</option>
            <option value="7">7 days</option>
            <option value="30">30 days</option>
            <option value="90">90 days</option>
          </select>
        </label>
      )}
      {who.scopes.includes("delete") && !entry.held && (
        <button type="button" class="small danger" onClick={() => setAsking(true)}>Delete…</button>
      )}
      {isAsking && (
        <Confirm title="Delete this output for good?" action="Delete for good" onDo={remove} onClose={() => setAsking(false)}>
          <p><Name text={entry.tool} empty="A tool without a name" />, {bytes(entry.size)}, <code>{entry.id}</code>. Its bytes cannot be brought back, and its handle leads nowhere.</p>
        </Confirm>
      )}
      {problem && <Trouble problem={problem} />}
    </>
  );
}
