// Which call came before or after another one in its session.
import { get } from "../service/api.ts";
import type { Entry, Listing } from "../service/wire.ts";

const PAGE = 200;
/** Answers that are looked through, at most. */
const MOST_PAGES = 25;

/** Return the call before (-1) or after (1) this one, null if it is the first or the last one. Raises `Problem`. */
export async function neighbourOf({ id, session }: Entry, step: -1 | 1): Promise<Entry | null> {
  let newer: Entry | null = null;
  let cursor: string | null = null;
  let isOlderWanted = false;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const found: Listing = await get<Listing>("captures", { session, limit: PAGE, cursor });
    for (const entry of found.captures) {
      if (isOlderWanted) return entry;
      if (entry.id === id && step > 0) return newer;
      isOlderWanted = entry.id === id;
      newer = entry;
    }
    cursor = found.cursor;
    if (!cursor) break;
  }
  return null;
}
