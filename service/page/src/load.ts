// What a view has asked the service for: nothing yet, an answer, or a problem.
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./service/api.ts";

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

export interface Loaded<T> {
  /** The last answer. It stays while another one is awaited, and if that has a problem. */
  answer?: T;
  problem?: Error;
  isLoading: boolean;
  retry(): void;
}

/** Ask again whenever one of `inputs` changes. An answer that comes too late is thrown away. */
export function useLoaded<T>(ask: (signal: AbortSignal) => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "retry">>({ isLoading: true });
  const [attempt, setAttempt] = useState(0);
  const retry = () => setAttempt((before) => before + 1);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    ask(controller.signal).then(
      (answer) => controller.signal.aborted || setState({ answer, isLoading: false }),
      (problem: Error) => controller.signal.aborted || setState((before) => ({ ...before, problem, isLoading: false })),
    );
    return () => controller.abort();
  }, [...inputs, attempt]);
  useRetries(state.problem, retry);
  return { ...state, retry };
}

/** Try again by itself after a problem that passes: after a while, and as soon as the machine is online again. */
export function useRetries(problem: Error | undefined, retry: () => void): void {
  const isPassing = problem instanceof Problem && problem.isPassing;
  const pause = (isPassing && problem.retryAfter !== null ? problem.retryAfter * 1000 : 0) || AGAIN_MS;
  useEffect(() => {
    if (!isPassing) return;
    const timer = setInterval(() => document.hidden || retry(), pause);
    addEventListener("online", retry);
    return () => {
      clearInterval(timer);
      removeEventListener("online", retry);
    };
  }, [isPassing, pause]);
}
