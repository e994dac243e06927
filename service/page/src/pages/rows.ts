// Rows of lines of JSON, and of CSV (RFC 4180).

export interface Rows {
  columns: string[];
  values: string[][];
}

const MAX_ROWS = 1000;
const MAX_COLUMNS = 50;

/** Return the rows, null if the text has none. The last line of a text that is cut does not count. */
export function rowsOf(text: string, isCut: boolean): Rows | null {
  const whole = isCut ? text.slice(0, text.lastIndexOf("\n") + 1) : text;
  return jsonLines(whole) ?? csv(whole);
}

function jsonLines(text: string): Rows | null {
  const lines = text.split("\n", MAX_ROWS + 1).filter((line) => line.trim()).slice(0, MAX_ROWS);
  const records: Record<string, unknown>[] = [];
  for (const line of lines) {
    if (!line.trimStart().startsWith("{")) return null;
    try {
      records.push(JSON.parse(line) as Record<string, unknown>);
    } catch {
      return null;
    }
  }
  if (records.length === 0) return null;
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))].slice(0, MAX_COLUMNS);
  const cell = (value: unknown) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value));
  return { columns, values: records.map((record) => columns.map((name) => cell(record[name]))) };
}

/** Read CSV whose first row names the columns. Every row must have as many fields. */
function csv(text: string): Rows | null {
  const rows = fields(text);
  const [columns, ...values] = rows;
  if (!columns || columns.length < 2 || columns.length > MAX_COLUMNS || values.length === 0) return null;
  return values.every((row) => row.length === columns.length) ? { columns, values } : null;
}

function fields(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const pattern = /(?:"((?:[^"]|"")*)"|([^,"\r\n]*))(,|\r?\n|$)/gy;
  while (pattern.lastIndex < text.length && rows.length <= MAX_ROWS) {
    const match = pattern.exec(text);
    if (!match) return [];
    row.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (match[3] === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}
