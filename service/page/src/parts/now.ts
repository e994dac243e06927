// The present, for times that are told from now: one clock for all of them.
import { useEffect, useState } from "preact/hooks";
import { now } from "../service/clock.ts";

const TICK_MS = 10_000;

const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Return the milliseconds since the epoch; what is drawn with them is drawn anew every ten seconds. */
export function useNow(): number {
  const [, redraw] = useState(0);
  useEffect(() => {
    const watcher = () => redraw((before) => before + 1);
    watchers.add(watcher);
    timer ??= setInterval(() => document.hidden || watchers.forEach((each) => each()), TICK_MS);
    return () => {
      watchers.delete(watcher);
      if (watchers.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now();
}
