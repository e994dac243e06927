// Sums of the service's statistics. The names of the figures are those of the metrics in service/docs/metrics.md.
import type { Overview, StatsRow } from "../service/wire.ts";

export interface Sums {
  outputs: number;
  /** Outputs of which the conversation got a part only, wherever the rest is. */
  spilled: number;
  bytes: number;
  kept: number;
  tokens: number;
  captures: number;
  read: number;
  reads: number;
  bursts: number;
}

export interface Group extends Sums {
  name: string;
}

export interface Point extends Sums {
  /** Seconds since the epoch. */
  start: number;
}

const SPILLED = new Set(["captured", "spooled", "truncated"]);

function nothing(): Sums {
  return { outputs: 0, spilled: 0, bytes: 0, kept: 0, tokens: 0, captures: 0, read: 0, reads: 0, bursts: 0 };
}

function add(sums: Sums, row: StatsRow): void {
  const figure = (name: string) => row.figures[name] ?? 0;
  sums.outputs += figure("tool_outputs");
  if (SPILLED.has(row.outcome)) sums.spilled += figure("tool_outputs");
  sums.bytes += figure("tool_output_bytes");
  sums.kept += figure("tool_output_kept_bytes");
  sums.tokens += figure("tool_output_tokens_kept_out");
  if (row.outcome === "created") sums.captures += figure("captures");
  sums.read += figure("captures_read");
  sums.reads += figure("reads");
  sums.bursts += figure("tool_rerun_bursts");
}

export function sum(rows: StatsRow[]): Sums {
  const total = nothing();
  for (const row of rows) add(total, row);
  return total;
}

/** What the service calls all tools or tenants beyond those that are told apart. */
export const OTHER = "other";

/** Return the sums of each tool or tenant, those first whose outputs kept the most out of conversations. */
export function byGroup(rows: StatsRow[], field: "tool" | "tenant"): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    const group = groups.get(row[field]) ?? { name: row[field], ...nothing() };
    groups.set(row[field], group);
    add(group, row);
  }
  const rank = (group: Group) => (group.name === OTHER ? -Infinity : group.bytes - group.kept);
  return [...groups.values()].sort((one, other) => rank(other) - rank(one) || other.outputs - one.outputs);
}

/** Return the sums of every step, those without any event too. */
export function overTime(stats: Overview): Point[] {
  const points = new Map<number, Point>();
  const first = Math.ceil(Date.parse(stats.since) / 1000 / stats.step) * stats.step;
  const last = Date.parse(stats.until) / 1000;
  for (let start = first; start < last; start += stats.step) points.set(start, { start, ...nothing() });
  for (const row of stats.series) {
    const point = points.get(Date.parse(row.start) / 1000);
    if (point) add(point, row);
  }
  return [...points.values()];
}

/** Return how often captures were read in each mode, the most frequent first. */
export function byMode(rows: StatsRow[]): { mode: string; reads: number }[] {
  const modes = new Map<string, number>();
  for (const row of rows) {
    const reads = row.figures["reads"];
    if (reads) modes.set(row.outcome, (modes.get(row.outcome) ?? 0) + reads);
  }
  return [...modes].map(([mode, reads]) => ({ mode, reads })).sort((one, other) => other.reads - one.reads);
}

/** Return how many captures fell into each class of size, named by its bound in bytes, smallest first. */
export function bySize(rows: StatsRow[]): { bound: number; captures: number }[] {
  const classes = new Map<number, number>();
  for (const row of rows) {
    const captures = row.figures["captures_by_size"];
    if (!captures) continue;
    const bound = Number(row.outcome) || Infinity;
    classes.set(bound, (classes.get(bound) ?? 0) + captures);
  }
  return [...classes].map(([bound, captures]) => ({ bound, captures })).sort((one, other) => one.bound - other.bound);
}
