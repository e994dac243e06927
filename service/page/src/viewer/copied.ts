// The text of lines to be copied: far more of it than is drawn.
import { get, pathOf } from "../service/api.ts";
import type { Text } from "../service/wire.ts";

/** Characters that are copied at once, at most. */
const MOST_COPIED = 5_000_000;

/** Return the text of some lines, without colours, however many answers that takes. */
export async function textOf(reference: string, first: number, last: number): Promise<string> {
  let asked: Record<string, string | number> | null = { start: first, end: last };
  let found = "";
  while (asked) {
    const text: Text = await get<Text>(`${pathOf(reference)}/lines`, asked);
    found += text.content;
    if (found.length > MOST_COPIED) throw new Error("Too many to copy: download it");
    asked = text.end_line < last || text.next?.["offset"] ? text.next : null;
  }
  return found;
}
