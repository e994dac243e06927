// Numbers, sizes and times as people read them.

const NUMBER = new Intl.NumberFormat("en");
const ROUGH = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];
const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function count(value: number): string {
  return NUMBER.format(value);
}

/** "2.3M": for numbers of which nobody needs the last digits. */
export function rough(value: number): string {
  return value < 10_000 ? count(value) : ROUGH.format(value);
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

/** Bytes that are a power of two as such: 64 KiB. */
export function binaryBytes(value: number): string {
  let unit = 0;
  while (value % 1024 === 0 && unit < BINARY_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${count(value)} ${BINARY_UNITS[unit]}`;
}

/** "8.8%", "41%", "<0.1%"; a dash if there is no whole. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const value = (100 * part) / whole;
  if (value > 0 && value < 0.05) return "<0.1%";
  return `${value.toFixed(value > 0 && value < 9.95 ? 1 : 0)}%`;
}

/** How much smaller something is stored: "4.5 times smaller"; nothing if it is not, or hardly. */
export function timesSmaller(size: number, stored: number): string {
  if (stored === 0 || size < 1.05 * stored) return "";
  return `${size < 9.95 * stored ? (size / stored).toFixed(1) : count(Math.round(size / stored))} times smaller`;
}

/** Units of how far a time is, their seconds, and the number from which on the next unit is used. */
const STEPS: [Intl.RelativeTimeFormatUnit, seconds: number, end: number][] = [
  ["second", 1, 60],
  ["minute", 60, 60],
  ["hour", 3600, 48],
  ["day", 86400, Infinity],
];
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How far a time is from `now`, in milliseconds since the epoch: "3 minutes ago", "in 2 days". */
export function ago(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const [unit, length] = STEPS.find(([, each, end]) => Math.abs(Math.round(seconds / each)) < end)!;
  return RELATIVE.format(Math.round(seconds / length), unit);
}

/** How long something took: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min". */
export function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  seconds = Math.round(seconds);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor(minutes / 60) % 24} h`;
}

/** A time of day, with its day unless that is `now`'s. */
export function clock(time: string, now: number): string {
  const at = new Date(time);
  return at.toDateString() === new Date(now).toDateString() ? at.toLocaleTimeString() : at.toLocaleString();
}

const MINUTE = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });

/** A day and a minute, for figures: "24 Nov, 10:32". */
export function minute(time: string): string {
  return MINUTE.format(new Date(time));
}

/** What a program says, as a sentence. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** The exact instant, in the reader's zone and in UTC. */
export function exact(time: string): string {
  return `${new Date(time).toLocaleString()} (${time})`;
}
