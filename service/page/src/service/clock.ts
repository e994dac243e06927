// The service's time. A reader's clock may be wrong by hours, and then "2 minutes ago" would be wrong too.

/** Differences up to this are those of the way, and of a header that counts in seconds. */
const TOLERATED_MS = 5000;

let ahead = 0;

/** Note the time of an answer: its header `Date`. */
export function noteDate(header: string | null): void {
  const difference = Date.parse(header ?? "") - Date.now();
  if (Number.isNaN(difference)) return;
  ahead = Math.abs(difference) > TOLERATED_MS ? difference : 0;
}

/** Milliseconds since the epoch, as the service has it. */
export function now(): number {
  return Date.now() + ahead;
}
