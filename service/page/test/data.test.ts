import assert from "node:assert/strict";
import { test } from "node:test";
import { ExactNumber, parsedJson } from "../src/capture/json.ts";
import { rowsOf } from "../src/capture/rows.ts";

test("a key that a prototype has is a key like any other", () => {
  const tree = parsedJson('{"__proto__": {"x": 1}, "constructor": 2}') as object;

  assert.deepEqual(Object.keys(tree), ["__proto__", "constructor"]);
  assert.equal(({} as Record<string, unknown>)["x"], undefined);
  const rows = rowsOf('{"a": 1, "__proto__": "own"}\n{"a": 2}\n', false)!;
  assert.deepEqual(rows.columns, ["a", "__proto__"]);
  assert.deepEqual(rows.values, [["1", "own"], ["2", ""]]);
});

test("numbers keep their digits where the browser can tell them", () => {
  const value = parsedJson('{"id": 12345678901234567890}') as { id: unknown };
  const hasSource = value.id instanceof ExactNumber;

  assert.equal(hasSource ? (value.id as ExactNumber).digits : value.id, hasSource ? "12345678901234567890" : 12345678901234567000);
});

test("what is no JSON, or is nested too deeply, is no tree", () => {
  assert.equal(parsedJson("{"), undefined);
  assert.doesNotThrow(() => parsedJson("[".repeat(200_000) + "]".repeat(200_000)));
});

test("CSV has quotes, quotes in quotes, newlines in quotes, and any end of a line", () => {
  const rows = rowsOf('name,note\r\nada,"says ""hi"", twice"\r\nbob,"two\nlines"\n"c"d,\n', false)!;

  assert.deepEqual(rows.columns, ["name", "note"]);
  assert.deepEqual(rows.values, [["ada", 'says "hi", twice'], ["bob", "two\nlines"], ["cd", ""]]);
});

test("a quote that is never closed takes the rest, and no time", () => {
  const rows = rowsOf(`a,b\n1,"${"x,\n".repeat(300_000)}`, false)!;

  assert.equal(rows.values.length, 1);
});

test("ten thousand columns are counted, and fifty are shown", () => {
  const line = (from: number) => Array.from({ length: 10_000 }, (_, at) => String(from + at)).join(",");
  const rows = rowsOf(`${line(0)}\n${line(1)}\n`, false)!;

  assert.deepEqual([rows.columns.length, rows.moreColumns, rows.values[0]!.length], [50, 9950, 50]);
});

test("a row that is too short is filled up, and one that is too long says that this is no table", () => {
  assert.deepEqual(rowsOf("a,b,c\n1,2\n", false)!.values, [["1", "2", ""]]);
  assert.equal(rowsOf("a,b\n1,2,3\n", false), null);
});

test("values between tabs are a table too", () => {
  assert.deepEqual(rowsOf("a\tb\n1,5\t2\n", false)!.values, [["1,5", "2"]]);
});

test("the last line of a text that is cut does not count, and one line alone is no table", () => {
  assert.deepEqual(rowsOf('{"a": 1}\n{"a": 2', true)!.values, [["1"]]);
  assert.equal(rowsOf(`{"a": "${"x".repeat(1000)}`, true), null);
  assert.equal(rowsOf("just a line\n", false), null);
});

test("of many rows the first thousand are read", () => {
  const rows = rowsOf("a,b\n" + "1,2\n".repeat(5000), false)!;

  assert.deepEqual([rows.values.length, rows.isCut], [1000, true]);
});
