// Requests to the service. The browser sends the session's cookie; changes need its token beside it.

export interface SignedIn {
  tenant: string;
  scopes: string[];
  /** The only session that the key may use, or what the names of its sessions begin with; null for all. */
  session: string | null;
  is_prefix: boolean;
  key: string;
  token: string;
  until: string | null;
}

export interface Entry {
  id: string;
  state: string;
  size: number;
  stored_size: number;
  lines: number;
  sha256: string;
  content_type: string;
  kind: string;
  tool: string;
  session: string;
  call_id: string;
  status: string;
  labels: Record<string, string>;
  created: string;
  expires: string;
  held: boolean;
  first_read: string | null;
  /** The id of the key that read it first. */
  first_reader: string;
  last_append: string | null;
  gap: { offset: number; size: number | null } | null;
}

export interface Listing {
  captures: Entry[];
  cursor: string | null;
  incomplete: boolean;
}

export interface Match {
  line_number: number;
  line: string;
  before: string[];
  after: string[];
}

export interface Text {
  content: string;
  start_line: number;
  end_line: number;
  total_lines: number;
  total_bytes: number;
  truncated: boolean;
  next: Record<string, string> | null;
  replaced: boolean;
  matches?: Match[];
  match_count?: number;
}

export interface Severity {
  count: number;
  line_numbers: number[];
}

export interface Summary {
  total_lines: number;
  longest_line: number;
  repeated: { line: string; count: number; first_line: number }[];
  errors: Severity;
  warnings: Severity;
  json_shape: string | null;
  scanned_bytes: number;
  truncated: boolean;
}

export interface StatsRow {
  start: string;
  tenant: string;
  tool: string;
  outcome: string;
  figures: Record<string, number>;
}

/** Advice on a tool, for a policy that sets nothing for it. A setting that may stay is missing. */
export interface Advice {
  tool: string;
  max_bytes: number | null;
  strategy: string | null;
  reasons: string[];
  missing: string;
  usual_max_bytes: number;
  usual_strategy: string;
  policy: string;
}

export interface Overview {
  since: string;
  until: string;
  step: number;
  /** All tools together, by start and outcome. */
  series: StatsRow[];
  /** The tools, or tenants, that kept the most out of conversations; the rest are `other`. */
  tools: StatsRow[];
  advice: Advice[];
}

export type Query = Record<string, string | number | boolean | null | undefined>;

/** What the service answers if it does not do what was asked. `detail` says what to do next. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
  ) {
    super(detail);
  }
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

/** Return the beginning of a capture's content as text. Raises `Problem`. */
export async function beginning(reference: string, size: number, signal: AbortSignal): Promise<string> {
  const headers = { Range: `bytes=0-${size - 1}`, ...(token ? { "Overspill-Page-Token": token } : {}) };
  const response = await fetch(address(`${pathOf(reference)}/content`), { signal, headers });
  if (!response.ok) throw await problemOf(response);
  return response.text();
}

async function request(method: string, path: string, query: Query, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (token) headers["Overspill-Page-Token"] = token;  // of a read it says whose tab this is
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "unreachable", "The service cannot be reached. It may be restarting: try again in a moment.");
  }
  if (response.ok) return response;
  throw await problemOf(response);
}

async function problemOf(response: Response): Promise<Problem> {
  const found = (await response.json().catch(() => ({}))) as Partial<{ code: string; detail: string; title: string }>;
  if (response.status === 401 && token) onSignedOut();
  return new Problem(response.status, found.code ?? "", found.detail ?? found.title ?? `HTTP ${response.status}`);
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await request("GET", path, query, undefined, signal)).json() as Promise<T>;
}

export async function change<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  const response = await request(method, path, {}, body);
  return (response.status === 204 ? undefined : await response.json()) as T;
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
