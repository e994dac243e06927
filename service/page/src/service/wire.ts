// What the service answers with, as far as the page uses it.

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

export type State = "live" | "complete" | "partial";

export interface Entry {
  id: string;
  state: State;
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
  /** Who read it first: the id of a key, or a token's subject. */
  first_reader: string;
  last_append: string | null;
  gap: { offset: number; size: number | null } | null;
}

/** Who has read a capture: the id of a key, or a token's subject; empty if nobody said who. */
export interface Reader {
  name: string;
  /** Somebody looked at it in a browser. */
  on_page: boolean;
  first_read: string;
  last_read: string;
}

/** Who read last comes first. */
export interface Readers {
  readers: Reader[];
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
  errors: Severity;
  warnings: Severity;
  scanned_bytes: number;
  truncated: boolean;
}

/** What a tenant has stored, and may store; a limit of 0 is none. */
export interface Usage {
  captures: number;
  size: number;
  stored_size: number;
  oldest: string | null;
  max_stored_size: number;
  max_captures: number;
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
