import assert from "node:assert/strict";
import { test } from "node:test";
import { sectionsIn } from "../src/viewer/sections.ts";

/** Return the lines of a terminal's text that have marks, as the service's search finds them. */
function marked(text: string) {
  return text.split("\n").map((line, at) => ({ line_number: at + 1, line })).filter(({ line }) => /\u001b\](?:133|633);[CDE]/.test(line));
}

test("commands are found with their lines and exit codes", () => {
  const text =
    "\u001b]133;A\u0007$ \u001b]133;B\u0007ls\n\u001b]633;E;ls \\x3b a\\\\b;nonce\u0007\u001b]133;C\u0007one\ntwo\n" +
    "\u001b]133;D;0\u001b\\\u001b]133;A\u0007$ \u001b]633;C\u0007no line end\u001b]633;D\u0007\n\u001b]0;title\u0007\u001b]133;C\u0007";

  assert.deepEqual(sectionsIn(marked(text)), [
    { command: "ls ; a\\b", start: 2, end: 3, code: 0 },
    { command: "", start: 4, end: 4, code: null },
    { command: "", start: 5, end: null, code: null },
  ]);
});

test("two integrations of one shell make one section of a command", () => {
  const text =
    "$ ls\n\u001b]133;C\u0007\u001b[30m\u001b(B\u001b]633;E;ls\u0007\u001b]133;C\u0007one\n" +
    "\u001b]133;D;0\u0007\u001b]133;D;0\u0007\u001b]633;E;cd\u0007\u001b]133;C\u0007\u001b]133;C\u0007\u001b[m\r\u001b]133;D;1\u0007$ ";

  assert.deepEqual(sectionsIn(marked(text)), [
    { command: "ls", start: 2, end: 2, code: 0 },
    { command: "cd", start: 3, end: 2, code: 1 },
  ]);
});

test("what begins in the middle, and exit codes that are none, make no section", () => {
  assert.deepEqual(sectionsIn(marked("\u001b]133;D;0\u0007$ x\n\u001b]133;C\u0007\u001b]133;D;-1e9\u0007")), [{ command: "", start: 2, end: 1, code: null }]);
});
