// The lines of one capture, fetched in blocks as they are looked at. Memory stays bounded whatever the size, and so does
// what is fetched: of lines that are long themselves only the beginnings are, and only of those in view.
import { get, pathOf, type Query } from "../service/api.ts";
import type { Text } from "../service/wire.ts";
import { lastWritten } from "./text.ts";

export const BLOCK = 200;
const MAX_BLOCKS = 60;
/** Bytes of each answer while lines are longer than `LONG_LINE_BYTES`: the beginning of one. */
const BEGINNING_BYTES = 768;
const LONG_LINE_BYTES = 3072;
/** Bytes of a block after which only lines in view are fetched. */
const BLOCK_BYTES = 60_000;

/** Characters of one line that are drawn at once: a browser takes a second for many more. */
const MAX_DRAWN = 1_000_000;

export interface Line {
  text: string;
  /** Bytes of the line that come before `text`, if somebody has read on so far that its beginning is not drawn. */
  skipped?: number;
  /** Bytes of the line that come before what is shown next, if the line is longer than one answer. */
  more?: number;
}

function blockOf(number: number): number {
  return Math.floor((number - 1) / BLOCK);
}

export class Lines {
  private blocks = new Map<number, Map<number, Line>>();
  private running = new Map<number, AbortController>();
  /** Lines that somebody reads on in just now. */
  private extending = new Set<number>();
  /** A line that is shown, and has to be fetched again: the capture has grown. */
  private stale: number | undefined;
  /** The lines that somebody looks at. */
  private first = 1;
  private last = 1;

  constructor(
    readonly reference: string,
    public total: number,
    public size: number,
    private readonly columns: number | undefined,
    private changed: (problem?: Error) => void,
  ) {}

  /** Return a line, undefined while it is fetched. */
  line(number: number): Line | undefined {
    return this.blocks.get(blockOf(number))?.get(number);
  }

  /** Note that the capture has more lines. Its last one may have become longer. */
  grow(total: number, size: number): void {
    this.stale = Math.max(1, this.total);
    const last = blockOf(this.stale);
    this.running.get(last)?.abort();
    this.running.delete(last);
    this.total = total;
    this.size = size;
  }

  /** Fetch what is missing of the lines from `first` to `last`. What nobody looks at any more is cancelled. */
  want(first: number, last: number): void {
    [this.first, this.last] = [first, Math.min(last, this.total)];
    const [from, to] = [blockOf(this.first), blockOf(this.last)];
    for (const [block, controller] of this.running) {
      if (block < from || block > to) controller.abort();
    }
    for (let block = from; block <= to; block += 1) {
      if (this.missing(block) !== undefined && !this.running.has(block)) void this.fetch(block);
    }
  }

  close(): void {
    for (const controller of this.running.values()) controller.abort();
  }

  /** Read on in a line that is longer than one answer. */
  async readOn(number: number): Promise<void> {
    const known = this.line(number);
    if (known?.more === undefined || this.extending.has(number)) return;
    this.extending.add(number);
    const query = { start: number, end: number, offset: known.more, ansi: true };
    try {
      const read = await get<Text>(`${pathOf(this.reference)}/lines`, query);
      this.blocks.get(blockOf(number))?.set(number, this.extended(known, number, read));
      this.changed();
    } catch (error) {
      this.changed(error as Error);
    } finally {
      this.extending.delete(number);
    }
  }

  /** Show the beginning of a line again. */
  restart(number: number): void {
    this.blocks.get(blockOf(number))?.delete(number);
    this.want(this.first, this.last);
  }

  private extended({ text: known, skipped = 0, more = 0 }: Line, number: number, { content, next }: Text): Line {
    const added = content.replace(/\n$/, "");
    const isFull = known.length + added.length > MAX_DRAWN;
    const line: Line = { text: this.shown(isFull ? added : known + added), skipped: isFull ? more : skipped };
    if (next && Number(next["start"]) === number) line.more = Number(next["offset"]);
    return line;
  }

  /** Return the first line of a block that is looked at and not there. */
  private missing(block: number): number | undefined {
    const lines = this.blocks.get(block);
    const end = Math.min(this.last, (block + 1) * BLOCK);
    for (let number = Math.max(this.first, block * BLOCK + 1); number <= end; number += 1) {
      if (!lines?.has(number) || number === this.stale) return number;
    }
    return undefined;
  }

  private async fetch(block: number): Promise<void> {
    const controller = new AbortController();
    this.running.set(block, controller);
    try {
      await this.fill(block, controller.signal);
    } catch (error) {
      if (!controller.signal.aborted) this.changed(error as Error);
    } finally {
      if (this.running.get(block) === controller) this.running.delete(block);
    }
  }

  /** Fetch a block answer by answer: all of it if its lines are short, else those that are looked at. */
  private async fill(block: number, signal: AbortSignal): Promise<void> {
    let end = Math.min((block + 1) * BLOCK, this.total);
    let start: number | undefined = this.blocks.has(block) ? this.missing(block) : block * BLOCK + 1;
    let fetched = 0;
    let isLong = false;
    while (start !== undefined && start <= end) {
      const asked: Query = { start, end, ansi: true, ...(isLong ? { max_bytes: BEGINNING_BYTES } : {}) };
      const text: Text = await get<Text>(`${pathOf(this.reference)}/lines`, asked, signal);
      this.take(block, text);
      this.changed();
      fetched += text.content.length;
      isLong = text.next?.["offset"] !== undefined || text.content.length > LONG_LINE_BYTES * (text.end_line - start + 1);
      if (fetched < BLOCK_BYTES) start = Math.max(text.end_line, start) + 1;
      else [start, end] = [this.missing(block), Math.min(end, this.last)];
    }
  }

  /** Keep the lines of an answer. Of a line that is too long for it the beginning counts. */
  private take(block: number, text: Text): void {
    const lines = this.blocks.get(block) ?? new Map<number, Line>();
    const found = text.content.replace(/\n$/, "").split("\n");
    for (let at = 0; at <= text.end_line - text.start_line; at += 1) {
      lines.set(text.start_line + at, { text: this.shown(found[at] ?? "") });
    }
    if (this.stale !== undefined && text.start_line <= this.stale && this.stale <= text.end_line) this.stale = undefined;
    const last = lines.get(text.end_line);
    if (text.next && last && Number(text.next["start"]) === text.end_line) last.more = Number(text.next["offset"]);
    this.keep(block, lines);
  }

  private shown(line: string): string {
    return this.columns === undefined ? line : lastWritten(line, this.columns);
  }

  private keep(block: number, lines: Map<number, Line>): void {
    this.blocks.delete(block);
    this.blocks.set(block, lines);
    for (const oldest of this.blocks.keys()) {
      if (this.blocks.size <= MAX_BLOCKS) break;
      this.blocks.delete(oldest);
    }
  }
}
