// The commands in what a shell wrote on its terminal, by the marks of its integration: OSC 133 of FinalTerm, 633 of VS
// Code. It reads them as `overspill.reading.shell_marks` does, but only from the lines that have marks.
import { get, pathOf } from "../service/api.ts";
import type { Text } from "../service/wire.ts";

/** One command: its output is lines `start` to `end`, from 1. What nobody told is null. */
export interface Section {
  command: string;
  start: number;
  end: number | null;
  code: number | null;
}

export interface MarkedLine {
  line_number: number;
  line: string;
}

const PAGE = 200;
const PAGES = 5;
/** What the service searches for: where outputs begin and end, and command lines. */
const PATTERN = "\\x1b\\](?:133|633);[CDE]";
const MARK = /\u001b\](?:133|633);([CDE])(?:;([^\u0007\u001b]*))?(?:\u0007|\u001b\\)/g;
const UNSEEN = /\u001b\[[ -?]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]|[\u0000- ]/g;
const ESCAPED = /\\(?:x([0-9a-fA-F]{2})|\\)/g;
const LONGEST_COMMAND = 1000;
/** A found line that has more bytes is cut. What ends a command may stand behind them: after an output without a line end. */
const FOUND_BYTES = 2048;
/** The most cut lines that are read as a whole. */
const WHOLE_LINES = 20;

/** Return the last commands of a terminal, as far as some requests find them, in their order. */
export async function lastCommands(reference: string, signal: AbortSignal): Promise<Section[]> {
  let asked: Record<string, string | number | boolean> | null = { pattern: PATTERN, ansi: true, from_end: true, max_matches: PAGE };
  const lines: MarkedLine[] = [];
  for (let page = 0; asked && page < PAGES; page += 1) {
    const found: Text = await get<Text>(`${pathOf(reference)}/grep`, asked, signal);
    lines.push(...(found.matches ?? []));
    asked = found.next;
  }
  lines.sort((one, other) => one.line_number - other.line_number);
  await Promise.all(lines.filter(({ line }) => isCut(line)).slice(-WHOLE_LINES).map((line) => complete(reference, line, signal)));
  return sectionsIn(lines);
}

function isCut(line: string): boolean {
  return line.endsWith("…") && new TextEncoder().encode(line).length > FOUND_BYTES;
}

/** Read all of a line that is cut, as far as some requests reach. */
async function complete(reference: string, cut: MarkedLine, signal: AbortSignal): Promise<void> {
  const number = cut.line_number;
  let asked: Record<string, string | number | boolean> | null = { start: number, end: number };
  cut.line = "";
  for (let page = 0; asked && page < PAGES; page += 1) {
    const found: Text = await get<Text>(`${pathOf(reference)}/lines`, { ...asked, ansi: true }, signal);
    cut.line += found.content;
    asked = found.next;
  }
}

/** Return the commands in lines that come in their order. */
export function sectionsIn(lines: MarkedLine[]): Section[] {
  const found: Section[] = [];
  let command = "";
  let isOpen = false;
  for (const { line_number: number, line } of lines) {
    let [at, isSeen] = [0, false];
    for (const match of line.matchAll(MARK)) {
      isSeen ||= line.slice(at, match.index).replace(UNSEEN, "") !== "";
      at = match.index + match[0].length;
      if (match[1] === "E") command = named(match[2] ?? "");
      else if (match[1] === "C") {
        const isAgain = isOpen && !isSeen && found.at(-1)?.start === number;
        const known = isAgain ? found.pop()!.command : "";
        found.push({ command: command || known, start: number, end: null, code: null });
        [command, isOpen, isSeen] = ["", true, false];
      } else if (isOpen) {
        close(found.at(-1)!, isSeen ? number : number - 1, match[2] ?? "");
        isOpen = false;
      }
    }
  }
  return found;
}

function close(section: Section, last: number, value: string): void {
  const [code = ""] = value.split(";", 1);
  section.end = Math.max(last, section.start - 1);
  section.code = /^\d{1,9}$/.test(code) ? Number(code) : null;
}

function named(value: string): string {
  const [escaped = ""] = value.split(";", 1);
  return escaped.replace(ESCAPED, (_, hex?: string) => (hex ? String.fromCharCode(Number.parseInt(hex, 16)) : "\\")).slice(0, LONGEST_COMMAND);
}
