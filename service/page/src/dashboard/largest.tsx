// The captures that cost most: the largest of all that are stored now.
import { Bar, Scrolling } from "../parts/boxes.tsx";
import { Name, Outcome, Time } from "../parts/text.tsx";
import { bytes } from "../format.ts";
import { link } from "../route.ts";
import type { Entry } from "../service/wire.ts";

/** How many are listed. */
export const LARGEST = 8;

export function Largest({ captures }: { captures: Entry[] }) {
  const most = captures[0]?.size ?? 1;
  if (captures.length === 0) return <p class="quiet">Nothing is stored now.</p>;
  return (
    <>
      <Scrolling label="The largest captures">
        <table>
          <thead>
            <tr>
              <th scope="col">Tool</th><th scope="col">Status</th><th scope="col">Session</th><th scope="col" class="figure">Size</th>
              <th scope="col" class="figure">Stored</th><th scope="col">Captured</th><th scope="col">Read</th><th scope="col">Expires</th>
            </tr>
          </thead>
          <tbody>{captures.map((each) => <Line key={each.id} entry={each} share={each.size / most} />)}</tbody>
        </table>
      </Scrolling>
      <p><a class="small" href={link(["captures"], { largest: 1 })}>More of the largest</a></p>
    </>
  );
}

function Line({ entry, share }: { entry: Entry; share: number }) {
  return (
    <tr>
      <td><a href={link(["captures", entry.id])}><Name text={entry.tool} empty="without a name" /></a></td>
      <td><Outcome entry={entry} /></td>
      <td>{entry.session ? <a href={link(["sessions", entry.session])}><Name text={entry.session} /></a> : <Name text="" />}</td>
      <td class="figure"><Bar share={share} /> <span>{bytes(entry.size)}</span></td>
      <td class="figure">{bytes(entry.stored_size)}</td>
      <td><Time at={entry.created} /></td>
      <td>{entry.first_read ? <Time at={entry.first_read} /> : <span class="quiet">not yet</span>}</td>
      <td>{entry.held ? "on hold" : <Time at={entry.expires} />}</td>
    </tr>
  );
}
