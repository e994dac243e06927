// Captured text is untrusted: what would move the cursor, change the direction of text or hide becomes visible, and of
// escape sequences only colours and styles count.

import { shownLine } from "./terminal.ts";

/** The label of a capture of a terminal: the terminal's name. */
export const TERMINAL_LABEL = "overspill.terminal";
/** The label of its columns and rows, as `80x24`. */
const SIZE_LABEL = "overspill.terminal_size";
/** The label with the command that runs there. */
export const COMMAND_LABEL = "overspill.command";

/** Return the columns of the terminal that has shown a capture: 0 if nobody knows, undefined if none has. */
export function terminalColumns(labels: Record<string, string>): number | undefined {
  if (!(TERMINAL_LABEL in labels)) return undefined;
  return Number(/^([1-9][0-9]{0,4})x[1-9][0-9]{0,4}$/.exec(labels[SIZE_LABEL] ?? "")?.[1] ?? 0);
}

export interface Span {
  text: string;
  styles: string[];
}

// C0 and C1 controls but tab, bidirectional controls, zero-width and other invisible characters, lone surrogates.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** Return the text with every hidden character as `␛`, `␀` or `⟨U+202E⟩`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (found) => {
    const code = found.codePointAt(0)!;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// CSI sequences, OSC strings up to BEL or ST, other strings, character sets, and two-character escapes (ECMA-48, section 5).
const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]+[0-~]|[0-Z\\-~])/g;

// How zsh (`%` or `#`) and fish (`⏎`) say that an output has no line end: the sign, blanks up to the edge of the terminal, and
// back. A terminal goes on in its next row, so the prompt overwrites nothing.
// Of styles around the sign a few are looked at, so that a line of nothing else takes no long time.
const STYLE = "(?:\\u001b(?:\\[[0-?]*[ -/]*[@-~]|[ -/]+[0-~])){0,8}";
const NO_LINE_END = new RegExp(`${STYLE}(?:[%#]${STYLE} {8,}\\r \\r|⏎${STYLE} {8,}\\r⏎ \\r)\\r*`);

/** Return a line as a terminal showed it in the end, with `⏎` between an output without a line end and a prompt. */
export function lastWritten(line: string, columns = 0): string {
  const [first, ...others] = line.split(NO_LINE_END).map((part) => shownLine(part, columns));
  const shown = first!.replace(ESCAPE, "") || !others.length ? [first!, ...others] : others;
  return shown.join("⏎ ");
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const STYLES: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike" };
const ENDS: Record<number, string[]> = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["strike"] };

const RETURNS_AT_END = /(?<!\r)\r+$/;

/** Spans of a line, at most: a browser draws each by itself. What comes behind them has no style. */
const MAX_SPANS = 500;

/**
 * Split a line into spans of one style. `styles` are classes; the last span's go on in no other line. Returns at the end of the
 * line belong to its line end, as programs of Windows and terminals write it.
 */
export function spans(text: string): Span[] {
  const line = text.replace(RETURNS_AT_END, "");
  const found: Span[] = [];
  const active = new Map<string, string>();
  let position = 0;
  const add = (text: string) => {
    if (text) found.push({ text: visible(text), styles: [...active.values()] });
  };
  for (const match of line.matchAll(ESCAPE)) {
    if (found.length === MAX_SPANS) return [...found, { text: visible(line.slice(position).replace(ESCAPE, "")), styles: [] }];
    add(line.slice(position, match.index));
    position = match.index + match[0].length;
    if (match[2] === "m") applyStyles(match[1] ?? "", active);
  }
  add(line.slice(position));
  return found;
}

function applyStyles(parameters: string, active: Map<string, string>): void {
  const numbers = parameters.split(/[;:]/).map((each) => Number(each) || 0);
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at]!;
    if (number === 0) active.clear();
    else if (STYLES[number]) active.set(STYLES[number]!, `a-${STYLES[number]}`);
    else if (ENDS[number]) for (const style of ENDS[number]!) active.delete(style);
    else if (number === 38 || number === 48) at = extendedColour(numbers, at, active);
    else if (number === 39) active.delete("fg");
    else if (number === 49) active.delete("bg");
    else setColour(number, active);
  }
}

function setColour(number: number, active: Map<string, string>): void {
  for (const [base, ground, bright] of [[30, "fg", ""], [40, "bg", ""], [90, "fg", "bright-"], [100, "bg", "bright-"]] as const) {
    const name = COLOURS[number - base];
    if (name) active.set(ground, `a-${ground}-${bright}${name}`);
  }
}

/** Read `5;n` or `2;r;g;b` behind a 38 or 48. The nearest of the sixteen colours of the theme stands for it. */
function extendedColour(numbers: number[], at: number, active: Map<string, string>): number {
  const ground = numbers[at] === 38 ? 30 : 40;
  if (numbers[at + 1] === 5) {
    const index = numbers[at + 2] ?? 0;
    if (index < 16) setColour(ground + (index & 7) + (index > 7 ? 60 : 0), active);
    else if (index < 232) setColour(ground + nearest(...cube(index)), active);
    else setColour(ground + (index > 243 ? 7 : 0), active);
    return at + 2;
  }
  setColour(ground + nearest(numbers[at + 2] ?? 0, numbers[at + 3] ?? 0, numbers[at + 4] ?? 0), active);
  return at + 4;
}

function cube(index: number): [number, number, number] {
  const value = index - 16;
  return [Math.floor(value / 36) * 51, (Math.floor(value / 6) % 6) * 51, (value % 6) * 51];
}

function nearest(red: number, green: number, blue: number): number {
  return (red > 127 ? 1 : 0) | (green > 127 ? 2 : 0) | (blue > 127 ? 4 : 0);
}
