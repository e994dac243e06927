import assert from "node:assert/strict";
import { test } from "node:test";
import { lastWritten, spans, visible } from "../src/viewer/text.ts";

const plain = (line: string) => spans(line).map((span) => span.text).join("");

test("what would move the cursor, turn the direction or hide is shown as a symbol", () => {
  assert.equal(visible("a\0b\x07\u202ec\u200bd\u2066"), "a␀b␇⟨U+202E⟩c⟨U+200B⟩d⟨U+2066⟩");
  assert.equal(visible("\ud800x\udc00"), "⟨U+D800⟩x⟨U+DC00⟩");
  assert.equal(visible("tab\tand 😀 stay"), "tab\tand 😀 stay");
});

test("a return before the line end is part of it, and any other is shown", () => {
  assert.deepEqual(["of Windows\r", "of a terminal\r\r", "\r", " 1%\r 2%"].map(plain), ["of Windows", "of a terminal", "", " 1%␍ 2%"]);
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

test("a line of a terminal is as it was left, in its colours", () => {
  const long = "echo abcdefghijabcdefghijabcdefg";
  const edited: [string, string][] = [
    ["$ echo abcdef\b\b\bXdef\b\b\b", "$ echo abcXdef"],
    ["$ echo a\r\x1b[C\x1b[Ctrue; echo a\r\x1b[8C", "$ true; echo a"],
    [`$ echo one two three${"\b".repeat(9)}\x1b[4P\x1b[5C`, "$ echo one three"],
    ["$ ls tmp\x1b[3D\x1b[4@/usr\x1b[3C", "$ ls /usrtmp"],
    ["$ e\r\x1b[3C\x1b[38;5;240mxit\r\x1b[3C\x1b[30m\x1b(B\x1b[mcho\x1b[K new\r\x1b[10C", "$ echo new"],
    [`ready>  ${long} \rhij\b\b\bXhij\b\b\b`, `ready>  ${long}Xhij`],
    [`ready>  ${long} \rhij\x1b[A\r\x1b[8Cshow\x1b[4D`, `ready>  show${long.slice(4)}hij`],
    [`ready>  ${long} \rhij\x1bM\r\x1b[8Cshow\x1b[4D`, `ready>  show${long.slice(4)}hij`],
    ["\x1b[1G\x1b[36m|\x1b[39m Loading\x1b[1G\x1b[0K/ Loading\x1b[1G\x1b[0K\x1b[32mok\x1b[39m Done", "ok Done"],
    ["Unpacking a ...\x1b7\x1b[24;0f\x1b[42mProgress: [ 50%]\x1b[49m [###...] \x1b8", "Unpacking a ..."],
    ["search: x\x1b[A\x1b[3Cdrawn above\x1b[1B\r\x1b[Kdone", "done"],
    [`inner 99%\r${" ".repeat(30)}\r\x1b[Aouter 33%`, "outer 33%"],
    ["xé中!\b\by", "xé y!"],
    ["a\tb\b\bc", "a      cb"],
  ];

  for (const [written, shown] of edited) {
    assert.equal(plain(lastWritten(written, 40)), shown);
    assert.equal(plain(lastWritten(`\x1b]633;P;Columns=40\x07${written}`, 80)), shown);
  }
  assert.deepEqual(spans(lastWritten("$ \x1b[32mlx\x1b[m\b\x1b[31ms", 80)), [
    { text: "$ ", styles: [] },
    { text: "l", styles: ["a-fg-green"] },
    { text: "s", styles: ["a-fg-red"] },
  ]);
});

test("a line that is written to very often takes no long time", () => {
  const begun = performance.now();
  for (const part of ["a\b", "\r\x1b[K", "x\x1b[@", "\x1b[999Cx", "\x1b[A \r", "\r"]) lastWritten(part.repeat(20_000) + "x", 80);

  assert.ok(performance.now() - begun < 5_000);
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
