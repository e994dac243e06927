// Rows of lines of JSON, and of CSV (RFC 4180).
import { ExactNumber, parsedJson } from "./json.ts";

export interface Rows {
  columns: string[];
  values: string[][];
  /** Columns beyond those. */
  moreColumns: number;
  /** Whether there are, or may be, more rows. */
  isCut: boolean;
}

const MAX_ROWS = 1000;
const MAX_COLUMNS = 50;

/** Return the rows, null if the text has none. The last line of a text that is cut does not count. */
export function rowsOf(text: string, isCut: boolean): Rows | null {
  const whole = isCut ? text.slice(0, text.lastIndexOf("\n") + 1) : text;
  return jsonLines(whole, isCut) ?? separated(whole, isCut);
}

function jsonLines(text: string, isCut: boolean): Rows | null {
  const lines = text.split("\n", MAX_ROWS + 1).filter((line) => line.trim());
  const records: Record<string, unknown>[] = [];
  for (const line of lines.slice(0, MAX_ROWS)) {
    const record = line.trimStart().startsWith("{") ? parsedJson(line) : undefined;
    if (record === undefined) return null;
    records.push(record as Record<string, unknown>);
  }
  if (records.length === 0) return null;
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const columns = names.slice(0, MAX_COLUMNS);
  return {
    columns,
    values: records.map((record) => columns.map((name) => (Object.hasOwn(record, name) ? cellOf(record[name]) : ""))),
    moreColumns: names.length - columns.length,
    isCut: isCut || lines.length > MAX_ROWS,
  };
}

function cellOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof ExactNumber) return value.digits;
  return JSON.stringify(value, (_key, part: unknown) => (part instanceof ExactNumber ? Number(part.digits) : part));
}

/** Read CSV, or values between tabs, whose first row names the columns. A row that is too short is filled up. */
function separated(text: string, isCut: boolean): Rows | null {
  const end = text.indexOf("\n");
  const separator = text.slice(0, end < 0 ? text.length : end).includes("\t") ? "\t" : ",";
  const [columns, ...values] = fields(text, separator);
  if (!columns || columns.length < 2 || values.length === 0) return null;
  const isRow = (row: string[]) => row.length > 1 && row.length <= columns.length;
  if (!values.every(isRow)) return null;
  const shown = columns.slice(0, MAX_COLUMNS);
  return {
    columns: shown,
    values: values.slice(0, MAX_ROWS).map((row) => shown.map((_, at) => row[at] ?? "")),
    moreColumns: columns.length - shown.length,
    isCut: isCut || values.length > MAX_ROWS,
  };
}

/** Return the fields of one row more than are shown. */
function fields(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let position = 0;
  while (position < text.length && rows.length <= MAX_ROWS + 1) {
    const [field, end] = fieldAt(text, position, separator);
    row.push(field);
    position = end + 1;
    if (text[end] === separator) {
      if (position === text.length) row.push("");
      continue;
    }
    if (text[end] === "\r" && text[end + 1] === "\n") position += 1;
    rows.push(row);
    row = [];
  }
  if (row.length > 0) rows.push(row);
  return rows.filter((each) => each.length > 1 || each[0] !== "");
}

/** Return the field at a position, and where it ends. What follows a closing quote belongs to it. */
function fieldAt(text: string, start: number, separator: string): [field: string, end: number] {
  if (text[start] !== '"') return plain(text, start, separator);
  const [field, end] = quoted(text, start);
  const [rest, last] = plain(text, end, separator);
  return [field + rest, last];
}

/** Return a field that is not quoted, and where it ends. */
function plain(text: string, start: number, separator: string): [field: string, end: number] {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return [text.slice(start, end), end];
}

/** Return a quoted field, in which two quotes stand for one, and where it ends. */
function quoted(text: string, start: number): [field: string, end: number] {
  let end = start + 1;
  for (;;) {
    const quote = text.indexOf('"', end);
    if (quote < 0) return [text.slice(start + 1).replaceAll('""', '"'), text.length];
    if (text[quote + 1] !== '"') return [text.slice(start + 1, quote).replaceAll('""', '"'), quote + 1];
    end = quote + 2;
  }
}
