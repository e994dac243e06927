// Requests to the service. The browser sends the session's cookie; changes need its token beside it.
import { noteDate } from "./clock.ts";
import type { SignedIn } from "./wire.ts";

export type Query = Record<string, string | number | boolean | null | undefined>;

/** How often a read is asked again by itself, and how long it waits for that at most, in seconds. */
const ATTEMPTS = 3;
const MOST_PATIENT = 10;
/** Answers that pass: the service is busy, restarts, or is behind a proxy that does not reach it. */
const PASSING = new Set([0, 429, 502, 503, 504]);

/** What the service answers if it does not do what was asked. `detail` says what to do next. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    /** Seconds until another attempt has a chance, as the service says it. */
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
  }

  /** Whether the same request may succeed in a while. */
  get isPassing(): boolean {
    return PASSING.has(this.status);
  }
}

/** Whether a capture is not there, or not any more. */
export function isGone(problem: Error): boolean {
  return problem instanceof Problem && (problem.status === 404 || problem.status === 410);
}

let token = "";
let onSignedOut = (): void => undefined;

/** Call this when a request finds that the session has ended. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

/** An address of the service. It is relative, so that the page works behind a path prefix. */
export function address(path: string, query: Query = {}): string {
  const words = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(words.map(([name, value]) => [name, String(value)])).toString();
  return `v1/${path}${text ? `?${text}` : ""}`;
}

export function pathOf(reference: string): string {
  return `captures/${encodeURIComponent(reference)}`;
}

/** Return an answer as JSON. A busy service is asked again for a while. Raises `Problem`. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await patiently(() => sent(address(path, query), { ...aborted(signal) }), signal)).json() as Promise<T>;
}

/** Return the beginning of a capture's content as text. Raises `Problem`. */
export async function beginning(reference: string, size: number, signal: AbortSignal): Promise<string> {
  const headers = { Range: `bytes=0-${size - 1}` };
  return (await patiently(() => sent(address(`${pathOf(reference)}/content`), { signal, headers }), signal)).text();
}

export async function change<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await sent(address(path), { method, ...content });
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function sent(url: string, { headers = {}, ...options }: RequestInit & { headers?: Record<string, string> }): Promise<Response> {
  const said = token ? { "Overspill-Page-Token": token } : {};  // of a read it says whose tab this is
  const asked = Date.now();
  let response: Response;
  try {
    response = await fetch(url, { ...options, headers: { Accept: "application/json", ...said, ...headers }, credentials: "same-origin" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, "unreachable", "The service cannot be reached. It may be restarting, or this machine is offline.");
  }
  noteDate(response.headers.get("Date"), asked);
  if (response.ok) return response;
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const found = (await response.json().catch(() => ({}))) as Partial<{ code: string; detail: string; title: string }>;
  if (response.status === 401 && token) onSignedOut();
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const detail = found.detail ?? found.title ?? `The service answered with HTTP ${response.status}.`;
  return new Problem(response.status, found.code ?? "", detail, Number.isNaN(seconds) ? null : seconds);
}

/** Ask again while the service says when. */
async function patiently<T>(ask: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      const wait = error instanceof Problem && error.isPassing ? error.retryAfter : null;
      if (wait === null || wait > MOST_PATIENT || attempt === ATTEMPTS) throw error;
      await pause(wait * 1000, signal);
    }
  }
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(new DOMException("nobody waits any more", "AbortError"))), { once: true });
  });
}

function aborted(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

/** Return who is signed in, null if somebody has to. */
export async function whoAmI(): Promise<SignedIn | null> {
  try {
    const found = await get<SignedIn>("page/session");
    token = found.token;
    return found;
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return null;
    throw error;
  }
}

export async function signIn(given: { key: string } | { code: string }): Promise<SignedIn> {
  const found = await change<SignedIn>("POST", "page/session", given);
  token = found.token;
  return found;
}

export async function signOut(): Promise<void> {
  await change("DELETE", "page/session");
  token = "";
}
