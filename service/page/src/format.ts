// Numbers, sizes and times as people read them.

const NUMBER = new Intl.NumberFormat("en");
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];

export function count(value: number): string {
  return NUMBER.format(value);
}

/** "1 read", "2,497 reads". */
export function countOf(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** "1 line", "2,497 lines". */
export function lineCount(value: number): string {
  return countOf(value, "line");
}

/** Bytes in decimal units, as file managers show them: 16.3 MB. */
export function bytes(value: number): string {
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const value = (100 * part) / whole;
  return `${value.toFixed(value > 0 && value < 10 ? 1 : 0)} %`;
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [3600, "minute"],
  [86400, "hour"],
  [Infinity, "day"],
];
const SECONDS: Record<string, number> = { second: 1, minute: 60, hour: 3600, day: 86400 };
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How far a time is from now: "3 minutes ago", "in 2 days". */
export function ago(time: string, now = Date.now()): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const [, unit] = STEPS.find(([limit]) => Math.abs(seconds) < limit) ?? STEPS[3]!;
  return RELATIVE.format(Math.round(seconds / SECONDS[unit]!), unit);
}

/** A time of day, with its day unless that is today. */
export function clock(time: string): string {
  const at = new Date(time);
  return at.toDateString() === new Date().toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

/** What a program says, as a sentence. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** The exact instant, in the reader's zone and in UTC. */
export function exact(time: string): string {
  return `${new Date(time).toLocaleString()} (${time})`;
}
