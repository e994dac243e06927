// The head of a capture: what it is, and where it leads.
import { useState } from "preact/hooks";
import { bytes, lineCount } from "../format.ts";
import { useKeys } from "../keys.ts";
import { Copy } from "../parts/copy.tsx";
import { Name, Outcome, StatePill, Time } from "../parts/text.tsx";
import { link } from "../route.ts";
import { address, pathOf } from "../service/api.ts";
import type { Entry } from "../service/wire.ts";
import { COMMAND_LABEL, TERMINAL_LABEL } from "../viewer/text.ts";
import { neighbourOf } from "./neighbours.ts";

interface HeaderProps {
  entry: Entry;
  hasFacts: boolean;
  onFacts(): void;
  isAlone: boolean;
  onAlone(): void;
}

export function Header({ entry, hasFacts, onFacts, isAlone, onAlone }: HeaderProps) {
  return (
    <header class="capture-head">
      <div class="what">
        <h1>
          <Name text={entry.labels[TERMINAL_LABEL] || entry.tool} empty="a tool without a name" /> <StatePill state={entry.state} /> {entry.held && <span class="state">on hold</span>}
        </h1>
        <p class="facts-line small">
          {entry.state === "complete" && entry.status && <Outcome entry={entry} />}
          {entry.labels[COMMAND_LABEL] && <code><Name text={entry.labels[COMMAND_LABEL]} /></code>}
          <span>{bytes(entry.size)}, {lineCount(entry.lines)}</span>
          {entry.session && <span class="in">in <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a></span>}
          <span>{entry.state === "live" ? "began " : ""}<Time at={entry.created} /></span>
        </p>
      </div>
      <p class="actions">
        {entry.session && <Neighbours entry={entry} />}
        <Copy text={entry.id} label="Copy handle" />
        <a class="button small" href={address(`${pathOf(entry.id)}/content`)} download={`${entry.id}.txt`}>Download</a>
        <button type="button" class="small toggle" aria-pressed={hasFacts} title="Facts, and what may be changed (i)" onClick={onFacts}>Facts</button>
        <button type="button" class="small toggle" aria-pressed={isAlone} title="Nothing but the output (z)" aria-label="Nothing but the output" onClick={onAlone}>⤢</button>
      </p>
    </header>
  );
}

/** The calls before and after this one in its session. */
function Neighbours({ entry }: { entry: Entry }) {
  const [said, setSaid] = useState("");
  const go = (step: -1 | 1) =>
    void neighbourOf(entry, step).then(
      (found) => (found ? (location.hash = link(["captures", found.id])) : setSaid(step < 0 ? "the first call" : "the last call")),
      () => setSaid("not found"),
    );
  useKeys({ "[": () => go(-1), "]": () => go(1) });
  return (
    <span class="neighbours">
      <span class="quiet small" role="status">{said}</span>
      <button type="button" class="small" title="The call before this one in its session ([)" aria-label="The call before" onClick={() => go(-1)}>‹</button>
      <button type="button" class="small" title="The call after this one in its session (])" aria-label="The call after" onClick={() => go(1)}>›</button>
    </span>
  );
}
