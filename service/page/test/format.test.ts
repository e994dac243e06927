import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, binaryBytes, bytes, duration, percent, rough, sentence, timesSmaller } from "../src/format.ts";

test("sizes have at most three digits, and a unit", () => {
  assert.deepEqual([0, 999, 1000, 99_950, 999_499, 999_500, 12e12].map(bytes), ["0 B", "999 B", "1.0 KB", "100 KB", "999 KB", "1.0 MB", "12.0 TB"]);
  assert.deepEqual([1, 65_536, 262_144, 2 ** 30].map(binaryBytes), ["1 B", "64 KiB", "256 KiB", "1 GiB"]);
});

test("a share of nothing is no number, and a small one is not nothing", () => {
  assert.deepEqual([percent(1, 0), percent(0, 5), percent(1, 100_000), percent(1, 11), percent(997, 1000)], ["–", "0%", "<0.1%", "9.1%", "100%"]);
});

test("large numbers are rough, small ones exact", () => {
  assert.deepEqual([7, 9_999, 2_299_973].map(rough), ["7", "9,999", "2.3M"]);
});

test("times are told from now", () => {
  const now = Date.parse("2026-01-15T12:00:00Z");

  assert.equal(ago("2026-01-15T11:58:00Z", now), "2 minutes ago");
  assert.equal(ago("2026-01-17T12:00:00Z", now), "in 2 days");
  assert.equal(ago("2026-01-15T11:59:00.200Z", now), "1 minute ago");
  assert.equal(ago("2026-01-15T11:00:10Z", now), "1 hour ago");
  assert.deepEqual(["2026-01-16T12:00:01Z", "2026-01-16T11:59:59Z"].map((time) => ago(time, now)), ["in 24 hours", "in 24 hours"]);
  assert.equal(ago("2026-01-13T12:10:00Z", now), "2 days ago");
  assert.deepEqual([9.96, 59.7, 119.6].map(duration), ["10 s", "1 min 0 s", "2 min 0 s"]);
  assert.deepEqual([0.24, 12.4, 200, 7500, 93_600].map(duration), ["0.2 s", "12 s", "3 min 20 s", "2 h 5 min", "1 d 2 h"]);
});

test("how much smaller something is stored is said only if it is", () => {
  assert.equal(timesSmaller(104, 100), "");
  assert.deepEqual([timesSmaller(450, 100), timesSmaller(100, 100), timesSmaller(1e6, 1000), timesSmaller(2904, 100), timesSmaller(5, 0)], ["4.5 times smaller", "", "1,000 times smaller", "29 times smaller", ""]);
});

test("what a program says becomes a sentence", () => {
  assert.deepEqual([sentence("no such capture"), sentence("Gone!")], ["No such capture.", "Gone!"]);
});
