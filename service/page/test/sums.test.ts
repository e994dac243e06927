import assert from "node:assert/strict";
import { test } from "node:test";
import { byGroup, bySize, overTime, sum } from "../src/dashboard/sums.ts";
import type { StatsRow } from "../src/service/wire.ts";

const row = (start: string, tool: string, outcome: string, figures: Record<string, number>): StatsRow => ({ start, tenant: "t", tool, outcome, figures });
const NOON = "2026-01-15T12:00:00Z";

test("inline outputs are outputs, and not too large", () => {
  const total = sum([row(NOON, "a", "inline", { tool_outputs: 3 }), row(NOON, "a", "captured", { tool_outputs: 1 }), row(NOON, "a", "spooled", { tool_outputs: 1 })]);

  assert.deepEqual([total.outputs, total.spilled], [5, 2]);
});

test("the tool that kept the most out comes first, and all others last", () => {
  const rows = ["other", "small", "large"].map((tool, at) => row(NOON, tool, "captured", { tool_outputs: 1, tool_output_bytes: [900, 10, 500][at]! }));

  assert.deepEqual(byGroup(rows, "tool").map((group) => group.name), ["large", "small", "other"]);
});

test("every step of the time is there, with or without an event", () => {
  const points = overTime({ since: NOON, until: "2026-01-15T12:05:00Z", step: 60, series: [row("2026-01-15T12:02:00Z", "", "captured", { tool_outputs: 2 })], tools: [], advice: [] });

  assert.deepEqual(points.map((point) => point.outputs), [0, 0, 2, 0, 0]);
});

test("sizes are in order, and the class without a bound is the last", () => {
  const rows = [row(NOON, "a", "+Inf", { captures_by_size: 1 }), row(NOON, "a", "65536", { captures_by_size: 2 }), row(NOON, "b", "16384", { captures_by_size: 3 })];

  assert.deepEqual(bySize(rows).map((each) => each.bound), [16_384, 65_536, Infinity]);
});
