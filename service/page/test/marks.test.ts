import assert from "node:assert/strict";
import { test } from "node:test";
import { marksIn, patternOf, pieces } from "../src/viewer/marks.ts";
import { ignoresCase } from "../src/viewer/search.ts";

test("marks reach over spans of several styles", () => {
  const spans = [{ text: "an er" }, { text: "ror here" }];
  const found = pieces(spans, marksIn("an error here", /error/gu));

  assert.deepEqual(found.map(({ text, isMarked }) => [text, isMarked]), [["an ", false], ["er", true], ["ror", true], [" here", false]]);
});

test("a line without marks is its spans", () => {
  assert.deepEqual(pieces([{ text: "a" }, { text: "" }, { text: "b" }], []).map(({ text }) => text), ["a", "b"]);
});

test("matches of nothing, and more of them than can be drawn, mark no more than they should", () => {
  assert.deepEqual(marksIn("abc", /x*/gu), []);
  assert.equal(marksIn("a".repeat(10_000), /a/gu).length, 500);
});

test("a pattern that only the service understands marks nothing", () => {
  assert.equal(patternOf("(?i)x", false), null);
  assert.equal(patternOf("(", false), null);
});

test("capitals count if the pattern has one, unless the reader says otherwise", () => {
  assert.equal(ignoresCase("error", null), true);
  assert.equal(ignoresCase("Error", null), false);
  assert.equal(ignoresCase("\\S+ error", null), true);
  assert.equal(ignoresCase("Error", "ignore"), true);
  assert.equal(ignoresCase("error", "match"), false);
});
