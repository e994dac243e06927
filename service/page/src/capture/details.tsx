// The facts about a capture, what leads to it, and what may be changed.
import { bytes, count, lineCount, timesSmaller } from "../format.ts";
import { Copy } from "../parts/copy.tsx";
import { Name, Time } from "../parts/text.tsx";
import { link } from "../route.ts";
import type { Entry, SignedIn } from "../service/wire.ts";
import { SEEN_LABEL } from "../viewer/seen.ts";
import { COMMAND_LABEL, TERMINAL_LABEL, visible } from "../viewer/text.ts";
import { Changes } from "./changes.tsx";
import { ReadBy, Who } from "./readers.tsx";

/** Labels that the client sets, as people read them. */
const LABELS: Record<string, string> = {
  "overspill.preview": "Preview",
  "overspill.spooled": "Waited in a spool since",
  "overspill.redacted": "Masked secrets",
  "overspill.cohort": "Cohort",
  "overspill.exit_code": "Exit code",
  [COMMAND_LABEL]: "Command",
  "overspill.terminal_size": "Terminal size",
  [TERMINAL_LABEL]: "Terminal",
};

export function Details({ entry, who, onChanged }: { entry: Entry; who: SignedIn; onChanged(): void }) {
  const labels = Object.entries(entry.labels).filter(([name]) => name !== SEEN_LABEL);
  return (
    <aside class="facts" aria-label="Facts" tabIndex={0}>
      <dl>
        <Fact term="Session">
          {entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" empty="none" />}
        </Fact>
        <Fact term="Call"><Name text={entry.call_id} empty="none" /></Fact>
        <Fact term="Status"><Name text={entry.status} empty="not given" /></Fact>
        <Fact term="Size">{bytes(entry.size)}, {lineCount(entry.lines)}</Fact>
        {entry.state !== "live" && <Fact term="Stored">{bytes(entry.stored_size)}{ratio(entry)}</Fact>}
        <Fact term="Kind"><Name text={`${entry.kind}, ${entry.content_type.split(";")[0]}`} /></Fact>
        <Fact term={entry.state === "live" ? "Began" : "Captured"}><Time at={entry.created} /></Fact>
        {entry.last_append && <Fact term="Last output"><Time at={entry.last_append} /></Fact>}
        {entry.gap && <Fact term="Missing at the end">from byte {count(entry.gap.offset)} on: {entry.gap.size === null ? "an unknown number of bytes, perhaps none" : bytes(entry.gap.size)}</Fact>}
        <Fact term="First read"><FirstRead entry={entry} /></Fact>
        {who.session === null && <Fact term="Read by"><ReadBy key={entry.id} reference={entry.id} /></Fact>}
        <Fact term="Expires">{entry.held ? "not before it is released" : <Time at={entry.expires} />}</Fact>
        {labels.map(([name, value]) => <Fact key={name} term={LABELS[name] ?? name}><Name text={value} /></Fact>)}
        <Lead term="Handle" text={entry.id} label="Copy the handle" />
        <Lead term="Command" text={`overspill tail ${entry.id}`} label="Copy command" />
        <Lead term="Code" text={`client.content("${entry.id}")`} label="Copy code" />
        {entry.sha256 && <Lead term="SHA-256" text={entry.sha256} label="Copy digest" />}
      </dl>
      <Changes entry={entry} who={who} onChanged={onChanged} />
    </aside>
  );
}

const READS_HELP = "Reads on this page do not count. Every single read is in the audit log, if the operator keeps one of reads.";

function FirstRead({ entry: { first_read: at, first_reader: reader } }: { entry: Entry }) {
  if (!at) return <span title={READS_HELP}>not yet</span>;
  return <><Time at={at} /> {reader && <span class="quiet small" title={READS_HELP}>by <Who name={reader} /></span>}</>;
}

/** How much smaller the output is as it is stored. */
function ratio({ size, stored_size: stored }: Entry): string {
  const smaller = timesSmaller(size, stored);
  return smaller && `, ${smaller}`;
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{visible(term)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What leads to the capture, to be copied. */
function Lead({ term, text, label }: { term: string; text: string; label: string }) {
  return (
    <div class="lead">
      <dt>{term}</dt>
      <dd><code title={text}>{text}</code> <Copy text={text} label="Copy" name={label} /></dd>
    </div>
  );
}
