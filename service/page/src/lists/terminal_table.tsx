// Terminals as a table: what runs where, and whether it still does.
import { bytes } from "../format.ts";
import { Scrolling } from "../parts/boxes.tsx";
import { Name, Outcome, Time } from "../parts/text.tsx";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";
import { COMMAND_LABEL, TERMINAL_LABEL } from "../viewer/text.ts";

export function TerminalTable({ terminals }: { terminals: Entry[] }) {
  return (
    <Scrolling label="List of terminals">
      <table class="rows terminals">
        <thead>
          <tr>
            <th scope="col">Terminal</th>
            <th scope="col">State</th>
            <th scope="col">Last activity</th>
            <th scope="col" class="medium">Started</th>
            <th scope="col" class="figure medium">Size</th>
            <th scope="col" class="medium">Session</th>
          </tr>
        </thead>
        <tbody>{terminals.map((each) => <Line key={each.id} entry={each} />)}</tbody>
      </table>
    </Scrolling>
  );
}

function Line({ entry }: { entry: Entry }) {
  const { labels } = entry;
  return (
    <tr>
      <td class="terminal">
        <a class="row-link" href={link(["captures", entry.id])}><Name text={labels[TERMINAL_LABEL] ?? ""} empty="without a name" /></a>
        {labels[COMMAND_LABEL] && <code class="quiet"><Name text={labels[COMMAND_LABEL]} /></code>}
      </td>
      <td><Outcome entry={entry} empty="ended" /></td>
      <td><Time at={entry.last_append ?? entry.created} /></td>
      <td class="medium"><Time at={entry.created} /></td>
      <td class="figure medium">{bytes(entry.size)}</td>
      <td class="medium">{entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" />}</td>
    </tr>
  );
}
