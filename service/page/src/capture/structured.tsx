// An output as data: JSON as a tree, lines of JSON and CSV as a table. Both are bounded: what is larger stays text.
import { bytes } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Shown } from "../parts/states.tsx";
import { beginning } from "../service/api.ts";
import type { Entry } from "../service/wire.ts";
import { DataTable } from "./data_table.tsx";
import { parsedJson } from "./json.ts";
import { rowsOf, type Rows } from "./rows.ts";
import { Tree } from "./tree.tsx";

/** Bytes of an output that is shown as a tree or a table, at most. */
const MAX_STRUCTURED = 1_000_000;
/** Bytes of JSON in one line that is shown as a tree at once: nobody can read the line. */
const MAX_OPENED = 100_000;

/** Whether the output may be shown as data. It is looked at only when somebody asks for that. */
export function isStructured(entry: Entry): boolean {
  return entry.size > 0 && (entry.kind === "json" || /json|csv|ndjson|tab-separated/.test(entry.content_type));
}

/** Whether nobody can read the lines: a small JSON document in one line. */
export function isOneLine(entry: Entry): boolean {
  return entry.kind === "json" && entry.lines === 1 && entry.size <= MAX_OPENED && entry.state !== "live";
}

/** What an output is as data, before anybody has looked. */
export function kindOf({ content_type: type, lines }: Entry): string {
  if (/csv|ndjson|jsonl|tab-separated/.test(type)) return "Table";
  return lines === 1 ? "Tree" : "Tree or table";
}

export function Structured({ entry }: { entry: Entry }) {
  const isCut = entry.size > MAX_STRUCTURED;
  const loaded = useLoaded(async (signal) => parsed(await beginning(entry.id, MAX_STRUCTURED, signal), isCut), [entry.id, entry.size]);
  return (
    <section class="structured" aria-label="As data" tabIndex={0}>
      <Shown of={loaded}>
        {(found) => (
          <>
            {isCut && <p class="notice">Only the first {bytes(MAX_STRUCTURED)} of {bytes(entry.size)} are shown so. The lines have all of it.</p>}
            {"rows" in found ? <DataTable rows={found.rows} /> : <Tree value={found.tree} />}
          </>
        )}
      </Shown>
    </section>
  );
}

type Parsed = { tree: unknown } | { rows: Rows };

function parsed(text: string, isCut: boolean): Parsed {
  const tree = isCut ? undefined : parsedJson(text);
  if (tree !== undefined) return { tree };
  const rows = rowsOf(text, isCut);
  if (rows) return { rows };
  throw new Error(
    isCut
      ? `Of this output only the first ${bytes(MAX_STRUCTURED)} are looked at, and they are neither lines of JSON nor CSV. The lines have all of it.`
      : "This output is neither JSON, nor lines of JSON, nor CSV. The lines show it as it is.",
  );
}
