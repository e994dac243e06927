// The service's time. A reader's clock may be wrong by hours, and then "2 minutes ago" would be wrong too.

/** Differences up to this are those of a header that counts in seconds, and of a clock that is hardly wrong. */
const TOLERATED_MS = 5000;

let ahead = 0;

/** Note the time of an answer, its header `Date`. It was made between now and when it was `asked` for. */
export function noteDate(header: string | null, asked: number): void {
  const made = Date.parse(header ?? "");
  if (Number.isNaN(made)) return;
  const least = made - Date.now(), most = made - asked;
  ahead = least > TOLERATED_MS ? least : most < -TOLERATED_MS ? most : 0;
}

/** Milliseconds since the epoch, as the service has it. */
export function now(): number {
  return Date.now() + ahead;
}
