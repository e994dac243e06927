// Captures as a table. On narrow screens only the columns that tell them apart are left.
import { Bar, Scrolling } from "../parts/boxes.tsx";
import { Name, Outcome, Time } from "../parts/text.tsx";
import { bytes, count } from "../format.ts";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";

export function CaptureTable({ captures }: { captures: Entry[] }) {
  const most = Math.max(1, ...captures.map((each) => each.size));
  return (
    <Scrolling label="List of captures">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Status</th>
            <th scope="col" class="figure">Size</th>
            <th scope="col" class="figure wide">Lines</th>
            <th scope="col" class="medium">Session</th>
            <th scope="col" class="wide">Call</th>
            <th scope="col">Captured</th>
            <th scope="col" class="medium">Read</th>
            <th scope="col" class="wide">Expires</th>
          </tr>
        </thead>
        <tbody>{captures.map((each) => <Line key={each.id} entry={each} share={each.size / most} />)}</tbody>
      </table>
    </Scrolling>
  );
}

function Line({ entry, share }: { entry: Entry; share: number }) {
  return (
    <tr>
      <td><a class="row-link" href={link(["captures", entry.id])}><Name text={entry.tool} empty="without a name" /></a></td>
      <td><Outcome entry={entry} /></td>
      <td class="figure"><Bar share={share} /> <span>{bytes(entry.size)}</span></td>
      <td class="figure wide">{entry.state === "live" ? "–" : count(entry.lines)}</td>
      <td class="medium">{entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" />}</td>
      <td class="wide quiet"><Name text={entry.call_id} /></td>
      <td><Time at={entry.created} /></td>
      <td class="medium">{entry.first_read ? <Time at={entry.first_read} /> : <span class="quiet">not yet</span>}</td>
      <td class="wide">{entry.held ? "on hold" : <Time at={entry.expires} />}</td>
    </tr>
  );
}
