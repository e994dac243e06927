// Which parts of a line matched, to mark them. The service has found the line; here it only looks better.
//
// A pattern is the reader's, or came with a link. The service's engine takes linear time for any of them, but a
// browser's may take for ever. So a regular expression runs in a worker, and one that takes too long marks nothing.
import { useEffect, useState } from "preact/hooks";
import type { Answer, Question } from "./highlight_worker.ts";
import { type Marked, marksIn, patternOf } from "./marks.ts";
import type { Wanted } from "./search.ts";

/** The address of the worker, which the build knows. */
declare const HIGHLIGHT_WORKER: string;

/** How long the worker may take for an answer. It starts slowly on a busy machine: that does not count. */
const PATIENCE_MS = 1000;
/** Texts whose marks are kept. */
const MAX_KEPT = 2000;

const NOTHING: Marked = [];

export class Highlighter {
  private readonly fixed: RegExp | null;
  private readonly kept = new Map<string, Marked>();
  private waiting = new Set<string>();
  private worker: Worker | undefined;
  private isReady = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;

  constructor(private readonly wanted: Wanted, private readonly changed: () => void) {
    this.fixed = wanted.isFixed ? patternOf(wanted.pattern.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), wanted.ignoreCase) : null;
  }

  /** Return the marks in a line's text. Those of a regular expression come later, and `changed` is called then. */
  marks(text: string): Marked {
    if (this.fixed) return marksIn(text, this.fixed);
    const known = this.kept.get(text);
    if (known || this.isStopped) return known ?? NOTHING;
    if (this.waiting.size === 0) queueMicrotask(() => this.ask());
    this.waiting.add(text);
    return NOTHING;
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.worker?.terminate();
  }

  private ask(): void {
    if (this.isStopped || this.timer !== undefined) return;
    this.worker ??= this.started();
    if (!this.isReady) return;
    const texts = [...this.waiting];
    const { pattern: source, ignoreCase } = this.wanted;
    this.timer = setTimeout(() => this.stop(), PATIENCE_MS);
    this.worker.postMessage({ source, ignoreCase, texts } satisfies Question);
  }

  private started(): Worker {
    const worker = new Worker(HIGHLIGHT_WORKER, { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => this.take(data));
    worker.addEventListener("error", () => this.stop());
    return worker;
  }

  /** Take an answer. The first is empty: the worker has started. */
  private take(answer: Answer): void {
    this.isReady = true;
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.kept.size > MAX_KEPT) this.kept.clear();
    for (const [text, marks] of answer) {
      this.kept.set(text, marks);
      this.waiting.delete(text);
    }
    if (this.waiting.size > 0) this.ask();
    this.changed();
  }
}

/** Return what marks the matches of a search; null if there is nothing to mark. */
export function useHighlighter(wanted: Wanted): Highlighter | null {
  const [state, setState] = useState<{ highlighter: Highlighter | null; version: number }>({ highlighter: null, version: 0 });
  useEffect(() => {
    if (wanted.isInverted || !wanted.pattern) return setState({ highlighter: null, version: 0 });
    const made = new Highlighter(wanted, () => setState((before) => ({ ...before, version: before.version + 1 })));
    setState({ highlighter: made, version: 0 });
    return () => made.stop();
  }, [wanted.pattern, wanted.ignoreCase, wanted.isFixed, wanted.isInverted]);
  return state.highlighter;
}
