// A live capture: news of its growth, by server-sent events.
import { useEffect } from "preact/hooks";
import { address, pathOf } from "../service/api.ts";
import type { Entry } from "../service/wire.ts";

/** How often a view is drawn anew while the capture grows. */
const PAUSE_MS = 300;

/** Call `onGrown` when a live capture has grown, at most every 300 ms, and once more when it has ended. */
export function useGrowth(entry: Entry | undefined, onGrown: () => void): void {
  const reference = entry?.state === "live" ? entry.id : undefined;
  useEffect(() => {
    if (!reference) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tell = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        onGrown();
      }, PAUSE_MS);
    };
    // The browser connects again by itself, behind the last event that came.
    const events = new EventSource(address(`${pathOf(reference)}/follow`, { lines: 0 }));
    events.addEventListener("output", tell);
    events.addEventListener("end", () => {
      events.close();
      tell();
    });
    return () => {
      clearTimeout(timer);
      events.close();
    };
  }, [reference]);
}
