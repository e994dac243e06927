import assert from "node:assert/strict";
import { test } from "node:test";
import { noteDate, now } from "../src/service/clock.ts";

/** By how many seconds the service's time is ahead, after an answer with a date of so many seconds from now. */
function ahead(date: number, asked: number): number {
  noteDate(new Date(Date.now() + date * 1000).toUTCString(), Date.now() + asked * 1000);
  return Math.round((now() - Date.now()) / 10_000) * 10;
}

test("a clock that is wrong is put right", () => {
  assert.deepEqual([ahead(7200, -1), ahead(-7200, -1)], [7200, -7200]);
});

test("an answer that comes late is no clock that is wrong", () => {
  assert.deepEqual([ahead(-30, -30), ahead(-15, -30), ahead(0, -30)], [0, 0, 0]);
});
