// A JSON output as a tree to fold, or lines of JSON and CSV as a table. Both are bounded: what is larger stays text.
import { useState } from "preact/hooks";
import { beginning, type Entry } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useLoaded } from "../load.ts";
import { Scrolling, Trouble, Waiting } from "../parts/small.tsx";
import { visible } from "../viewer/text.ts";
import { rowsOf, type Rows } from "./rows.ts";

/** Bytes of an output that is shown as a tree or a table, at most. */
export const MAX_STRUCTURED = 1_000_000;
const MAX_CHILDREN = 200;
const OPEN_LEVELS = 2;

export function Structured({ entry }: { entry: Entry }) {
  const loaded = useLoaded(async (signal) => {
    return parsed(await beginning(entry.id, MAX_STRUCTURED, signal), entry.size > MAX_STRUCTURED);
  }, [entry.id]);
  if (loaded.problem) return <Trouble problem={loaded.problem} />;
  if (!loaded.answer) return <Waiting />;
  const cut = entry.size > MAX_STRUCTURED && <p class="quiet">Only of the first {bytes(MAX_STRUCTURED)}: the lines below have all.</p>;
  return (
    <section class="structured" aria-label="As data">
      {cut}
      {"rows" in loaded.answer ? <Table rows={loaded.answer.rows} /> : <Node name="" value={loaded.answer.tree} level={0} />}
    </section>
  );
}

type Parsed = { tree: unknown } | { rows: Rows };

function parsed(text: string, isCut: boolean): Parsed {
  if (!isCut) {
    try {
      return { tree: JSON.parse(text) as unknown };
    } catch {
      // it may be lines of JSON, or CSV
    }
  }
  const rows = rowsOf(text, isCut);
  if (!rows) throw new Error("This output is neither JSON, nor lines of JSON, nor CSV.");
  return { rows };
}

function Node({ name, value, level }: { name: string; value: unknown; level: number }) {
  const [limit, setLimit] = useState(MAX_CHILDREN);
  const label = name && <span class="json-name">{visible(name)}: </span>;
  if (value === null || typeof value !== "object") {
    return <div class="json-leaf">{label}<Leaf value={value} /></div>;
  }
  const children = Object.entries(value);
  const kind = Array.isArray(value) ? `[${count(children.length)}]` : `{${count(children.length)}}`;
  return (
    <details class="json" open={level < OPEN_LEVELS}>
      <summary>{label}<span class="quiet">{kind}</span></summary>
      {children.slice(0, limit).map(([key, child]) => <Node key={key} name={key} value={child} level={level + 1} />)}
      {children.length > limit && (
        <button type="button" class="small" onClick={() => setLimit(limit + MAX_CHILDREN)}>{count(children.length - limit)} more</button>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  return <span class={`json-${typeof value}`}>{visible(JSON.stringify(value))}</span>;
}

function Table({ rows }: { rows: Rows }) {
  return (
    <Scrolling isShort label="Rows">
      <table>
        <thead><tr><th scope="col" class="figure">#</th>{rows.columns.map((name) => <th scope="col">{visible(name)}</th>)}</tr></thead>
        <tbody>
          {rows.values.map((row, at) => (
            <tr key={at}>
              <td class="figure quiet">{at + 1}</td>
              {row.map((cell) => <td>{visible(cell)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}
