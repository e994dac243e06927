// Rows as a table: the first ones, and more on request.
import { useState } from "preact/hooks";
import { count, countOf } from "../format.ts";
import { Scrolling } from "../parts/boxes.tsx";
import { visible } from "../viewer/text.ts";
import type { Rows } from "./rows.ts";

/** Rows that are drawn at once, and characters of a cell. */
const PAGE = 200;
const MAX_CELL = 500;
const NUMBER = /^-?\d[\d,]*(\.\d+)?%?$/;

export function DataTable({ rows: { columns, values, moreColumns, isCut } }: { rows: Rows }) {
  const [limit, setLimit] = useState(PAGE);
  const isFigure = columns.map((_, column) => isNumeric(values, column));
  return (
    <>
      <p class="quiet small">
        {isCut ? `The first ${countOf(values.length, "row")}` : countOf(values.length, "row")}, {countOf(columns.length + moreColumns, "column")}
        {moreColumns > 0 && `, of which the first ${count(columns.length)} are shown`}.
      </p>
      <Scrolling label="Rows">
        <table class="data">
          <thead>
            <tr>
              <th scope="col" class="figure">#</th>
              {columns.map((name, column) => <th key={column} scope="col" class={isFigure[column] ? "figure" : ""}>{visible(cut(name))}</th>)}
            </tr>
          </thead>
          <tbody>
            {values.slice(0, limit).map((row, at) => (
              <tr key={at}>
                <td class="figure quiet">{count(at + 1)}</td>
                {row.map((cell, column) => <td key={column} class={isFigure[column] ? "figure" : ""}>{visible(cut(cell))}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrolling>
      {values.length > limit && <p><button type="button" class="small" onClick={() => setLimit(limit + PAGE)}>{count(Math.min(PAGE, values.length - limit))} more rows</button></p>}
    </>
  );
}

function cut(text: string): string {
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text;
}

/** Whether every cell of a column that is not empty is a number. */
function isNumeric(values: string[][], column: number): boolean {
  const cells = values.slice(0, PAGE).map((row) => row[column] ?? "").filter(Boolean);
  return cells.length > 0 && cells.every((cell) => NUMBER.test(cell));
}
