// One call of a session, and on request what the model saw of its output.
import { useState } from "preact/hooks";
import { Seen } from "./seen.tsx";
import { Bar } from "../parts/boxes.tsx";
import { Clock, Name, Outcome, Time } from "../parts/text.tsx";
import { bytes, duration, lineCount } from "../format.ts";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";

interface CallProps {
  entry: Entry;
  /** Of the largest output of the session. */
  share: number;
  /** When the first call of the session was captured, in milliseconds since the epoch. */
  start: number;
}

export function Call({ entry, share, start }: CallProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <span class="when small quiet"><Clock at={entry.created} /> <span>+{duration((Date.parse(entry.created) - start) / 1000)}</span></span>
      <span class="what">
        <a href={link(["captures", entry.id])}><Name text={entry.tool} empty="a tool without a name" /></a> <Outcome entry={entry} empty="" />
        {entry.call_id && <span class="quiet small"><Name text={entry.call_id} /></span>}
      </span>
      <span class="size"><Bar share={share} /> <strong>{bytes(entry.size)}</strong></span>
      <span class="small quiet more">
        {entry.state === "live" ? "" : `${lineCount(entry.lines)}, `}
        {entry.first_read ? <>read <Time at={entry.first_read} /></> : "not read"}
        {entry.held ? ", on hold" : <>, expires <Time at={entry.expires} /></>}
      </span>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="small">What the model saw</summary>
        {isOpen && <Seen entry={entry} />}
      </details>
    </li>
  );
}
