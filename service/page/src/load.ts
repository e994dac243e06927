// What a view has asked the service for: nothing yet, an answer, or a problem.
import { useEffect, useState } from "preact/hooks";

const AGAIN_MS = 5000;

/** Return a number that changes, by default every five seconds, while `isOn` and somebody looks. */
export function useTicks(isOn: boolean, pause = AGAIN_MS): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => document.hidden || setTicks((before) => before + 1), pause);
    return () => clearInterval(timer);
  }, [isOn, pause]);
  return ticks;
}

export type Loaded<T> = { answer?: T; problem?: Error; isLoading: boolean };

/** Ask again whenever one of `inputs` changes. An answer that comes too late is thrown away. */
export function useLoaded<T>(ask: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ isLoading: true });
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    ask(controller.signal).then(
      (answer) => controller.signal.aborted || setState({ answer, isLoading: false }),
      (problem: Error) => controller.signal.aborted || setState((before) => ({ ...before, problem, isLoading: false })),
    );
    return () => controller.abort();
  }, inputs);
  return state;
}
