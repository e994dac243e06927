// The lines of one capture, fetched in blocks as they are looked at. Memory stays bounded whatever the size.
import { get, pathOf, type Text } from "../api.ts";
import { lastWritten } from "./text.ts";

export const BLOCK = 200;
const MAX_BLOCKS = 60;

export interface Line {
  text: string;
  /** Bytes of the line that come before what is shown next, if the line is longer than one answer. */
  more?: number;
}

/** Characters that are copied at once, at most. */
const MOST_COPIED = 5_000_000;

/** Return the text of some lines, without colours, however many answers that takes. */
export async function textOf(reference: string, first: number, last: number): Promise<string> {
  let asked: Record<string, string | number> | null = { start: first, end: last };
  let found = "";
  while (asked) {
    const text: Text = await get<Text>(`${pathOf(reference)}/lines`, asked);
    found += text.content;
    if (found.length > MOST_COPIED) throw new Error("These lines are too many to copy. Download the output.");
    asked = text.end_line < last || text.next?.["offset"] ? text.next : null;
  }
  return found;
}

function blockOf(number: number): number {
  return Math.floor((number - 1) / BLOCK);
}

export class Lines {
  private blocks = new Map<number, Map<number, Line>>();
  private running = new Map<number, AbortController>();
  /** A block that is shown, and has to be fetched again: the capture has grown. */
  private stale: number | undefined;

  constructor(
    readonly reference: string,
    public total: number,
    public size: number,
    private readonly isTerminal: boolean,
    private changed: (problem?: Error) => void,
  ) {}

  /** Return a line, undefined while it is fetched. */
  line(number: number): Line | undefined {
    return this.blocks.get(blockOf(number))?.get(number);
  }

  /** Note that the capture has more lines. Its last one may have become longer. */
  grow(total: number, size: number): void {
    const last = blockOf(Math.max(1, this.total));
    this.running.get(last)?.abort();
    this.running.delete(last);
    this.stale = last;
    this.total = total;
    this.size = size;
  }

  /** Fetch what is missing of the lines from `first` to `last`. What nobody looks at any more is cancelled. */
  want(first: number, last: number): void {
    const from = blockOf(first);
    const to = blockOf(Math.min(last, this.total));
    for (const [block, controller] of this.running) {
      if (block < from || block > to) controller.abort();
    }
    for (let block = from; block <= to; block += 1) {
      if ((!this.blocks.has(block) || block === this.stale) && !this.running.has(block)) void this.fetch(block);
    }
  }

  close(): void {
    for (const controller of this.running.values()) controller.abort();
  }

  /** Read on in a line that is longer than one answer. */
  async readOn(number: number): Promise<void> {
    const known = this.line(number);
    if (known?.more === undefined) return;
    const query = { start: number, end: number, offset: known.more, ansi: true };
    try {
      const read = await get<Text>(`${pathOf(this.reference)}/lines`, query);
      this.blocks.get(blockOf(number))?.set(number, this.extended(known, number, read));
      this.changed();
    } catch (error) {
      this.changed(error as Error);
    }
  }

  private extended(line: Line, number: number, { content, next }: Text): Line {
    const text = this.shown(line.text + content.replace(/\n$/, ""));
    return next && Number(next["start"]) === number ? { text, more: Number(next["offset"]) } : { text };
  }

  private async fetch(block: number): Promise<void> {
    const controller = new AbortController();
    this.running.set(block, controller);
    if (block === this.stale) this.stale = undefined;
    const lines = new Map<number, Line>();
    try {
      const end = Math.min((block + 1) * BLOCK, this.total);
      let start = block * BLOCK + 1;
      while (start <= end) start = await this.fetchFrom(start, end, lines, controller.signal);
      this.keep(block, lines);
      this.changed();
    } catch (error) {
      if (!controller.signal.aborted) this.changed(error as Error);
    } finally {
      if (this.running.get(block) === controller) this.running.delete(block);
    }
  }

  /** Fetch one answer. Return the line to go on from. Of a line that is too long for it only the beginning counts. */
  private async fetchFrom(start: number, end: number, lines: Map<number, Line>, signal: AbortSignal): Promise<number> {
    const text = await get<Text>(`${pathOf(this.reference)}/lines`, { start, end, ansi: true }, signal);
    const found = text.content.replace(/\n$/, "").split("\n");
    for (let at = 0; at <= text.end_line - text.start_line; at += 1) {
      lines.set(text.start_line + at, { text: this.shown(found[at] ?? "") });
    }
    const last = lines.get(text.end_line);
    if (text.next && last && Number(text.next.start) === text.end_line) last.more = Number(text.next.offset);
    return Math.max(text.end_line, start) + 1;
  }

  private shown(line: string): string {
    return this.isTerminal ? lastWritten(line) : line;
  }

  private keep(block: number, lines: Map<number, Line>): void {
    this.blocks.set(block, lines);
    for (const oldest of this.blocks.keys()) {
      if (this.blocks.size <= MAX_BLOCKS) break;
      this.blocks.delete(oldest);
    }
  }
}
