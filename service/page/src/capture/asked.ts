// What the address says of an output.
import { type Wanted, ignoresCase } from "../viewer/search.ts";
import type { Range } from "../viewer/seen.ts";
import { CONTEXTS } from "./search.tsx";

export interface Asked {
  wanted: Wanted;
  /** The lines that a link points to. */
  selected: Range | null;
  /** Lines around each match, if only matches are shown. */
  context: number | undefined;
  /** Whether what the model saw is shown beside the whole. */
  isBeside: boolean;
  /** Whether it is shown as a tree or a table; null if the address does not say so. */
  isData: boolean | null;
}

export function asked(query: URLSearchParams): Asked {
  const pattern = query.get("q") ?? "";
  return {
    wanted: {
      pattern,
      ignoreCase: ignoresCase(pattern, query.get("case")),
      isFixed: !query.has("regex"),
      isInverted: query.has("v"),
    },
    selected: linesOf(query.get("lines")),
    context: pattern ? CONTEXTS.find((lines) => String(lines) === query.get("only")) : undefined,
    isBeside: query.has("seen"),
    isData: query.has("as") ? query.get("as") === "data" : null,
  };
}

/** Read `12` or `12-40`. */
function linesOf(text: string | null): Range | null {
  const found = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text ?? "");
  if (!found) return null;
  const first = Math.max(1, Number(found[1]));
  return [first, Math.max(first, Number(found[2] ?? first))];
}
