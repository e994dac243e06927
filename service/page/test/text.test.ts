import assert from "node:assert/strict";
import { test } from "node:test";
import { lastWritten, spans, visible } from "../src/viewer/text.ts";

const plain = (line: string) => spans(line).map((span) => span.text).join("");

test("what would move the cursor, turn the direction or hide is shown as a symbol", () => {
  assert.equal(visible("a\0b\x07\u202ec\u200bd\u2066"), "a␀b␇⟨U+202E⟩c⟨U+200B⟩d⟨U+2066⟩");
  assert.equal(visible("\ud800x\udc00"), "⟨U+D800⟩x⟨U+DC00⟩");
  assert.equal(visible("tab\tand 😀 stay"), "tab\tand 😀 stay");
});

test("colours and styles count, and every other escape sequence vanishes", () => {
  const found = spans("\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;title\x07plain\x1b]8;;http://x\x1b\\link\x1b[38;5;10mgreen");

  assert.deepEqual(found.map((span) => span.text), ["red", " ", "plain", "link", "green"]);
  assert.deepEqual(found[0]!.styles, ["a-bold", "a-fg-red"]);
  assert.deepEqual(found.at(-1)!.styles, ["a-fg-bright-green"]);
});

test("an escape sequence without an end takes no line with it", () => {
  assert.equal(plain("a\x1b[31"), "a␛[31");
  assert.equal(plain("a\x1b"), "a␛");
});

test("a flood of colours becomes a bounded number of spans, and loses no text", () => {
  const flood = Array.from({ length: 20_000 }, (_, at) => `\x1b[3${at % 8}m${at % 10}`).join("");
  const found = spans(flood);

  assert.ok(found.length <= 501);
  assert.equal(plain(flood).length, 20_000);
  assert.ok(!plain(flood).includes("["));
});

test("a line of a terminal is what it was last rewritten to", () => {
  assert.equal(lastWritten(" 10%\r 50%\r100%\r\x1b[K"), "100%");
  assert.equal(lastWritten("plain"), "plain");
});

test("a line of a terminal is without what backspaces went back over, and keeps its colours", () => {
  assert.equal(lastWritten("$ \x1b[32me\x1b[39m\becho\x1b=\b\b\b\bls 😀\bx"), "$ \x1b[32m\x1b[39m\x1b=ls x");
  assert.equal(lastWritten("\b\ba\b\b\bb"), "b");
  assert.equal(lastWritten(`${"\x1b[1m".repeat(20_000)}${"a\b".repeat(20_000)}`).length, 80_000);
});

test("keypad modes and character sets, which shells send, are not shown", () => {
  assert.equal(plain("\x1b=\x1b(B$ ls\x1b>\x1b7"), "$ ls");
});

test("an output without a line end stays before the prompt that follows it", () => {
  const blanks = " ".repeat(79);

  const zsh = `result\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m${blanks}\r \r\r\x1b[0mvm% `;
  const fish = `result\x1b[2m⏎\x1b(B\x1b[m${blanks}\r⏎ \r\x1b[Kvm# \x1b[K\r\x1b[11Cprintf \r`;

  assert.equal(lastWritten(zsh), "result⏎ \x1b[0mvm% ");
  assert.match(lastWritten(fish), /^result⏎ /);
  assert.equal(lastWritten(`\x1b[1m\x1b[7m%\x1b[27m${blanks}\r \r\r\x1b[0mvm% `), "\x1b[0mvm% ");
});

test("a line of nothing but styles takes no long time", () => {
  const styles = "\x1b[m".repeat(20_000);
  const begun = performance.now();

  assert.equal(lastWritten(`a${styles}%${styles}\rb`), "b");
  assert.ok(performance.now() - begun < 2_000);
});
