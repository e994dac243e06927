// Who has read an output, and when.
import { useState } from "preact/hooks";
import { count } from "../format.ts";
import { useLoaded, useTicks } from "../load.ts";
import { Name, Time } from "../parts/text.tsx";
import { get, pathOf } from "../service/api.ts";
import type { Reader, Readers } from "../service/wire.ts";

/** Readers are noted within seconds, and nobody waits for them. */
const AGAIN_MS = 15_000;
const SHOWN = 3;
const KEY_ID = /^[0-9a-f]{12}$/;
/** Readers whose names are not those of keys or people. */
const OTHERS: Record<string, string> = {
  "": "without a key",
  local: "the user of the service's machine",
  jwt: "a token that names nobody",
};

/** Who is known by the id of a key, or by a token's subject. */
export function Who({ name }: { name: string }) {
  const other = OTHERS[name];
  if (other !== undefined) return <>{other}</>;
  return <>{KEY_ID.test(name) && "key "}<Name text={name} /></>;
}

export function ReadBy({ reference }: { reference: string }) {
  const ticks = useTicks(true, AGAIN_MS);
  const found = useLoaded((signal) => get<Readers>(`${pathOf(reference)}/readers`, {}, signal), [reference, ticks]);
  if (found.answer) return <List readers={found.answer.readers} />;
  return <span class="quiet">{found.problem ? "cannot be told now" : "…"}</span>;
}

function List({ readers }: { readers: Reader[] }) {
  const [isWhole, setWhole] = useState(false);
  if (readers.length === 0) return <span class="quiet">nobody yet</span>;
  const shown = isWhole ? readers : readers.slice(0, SHOWN);
  return (
    <>
      <ul class="readers">{shown.map((reader) => <Item key={`${reader.on_page} ${reader.name}`} reader={reader} />)}</ul>
      {readers.length > SHOWN && (
        <button type="button" class="small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Fewer" : `All ${count(readers.length)}`}
        </button>
      )}
    </>
  );
}

function Item({ reader }: { reader: Reader }) {
  const isOnce = reader.first_read === reader.last_read;
  return (
    <li>
      <Who name={reader.name} />
      <div class="quiet">
        <Time at={reader.last_read} />
        {!isOnce && <>, first <Time at={reader.first_read} /></>}
        {reader.on_page && ", on this page"}
      </div>
    </li>
  );
}
