// What the address says of the dashboard, and the request for it.
import { fixedSpan, type Range, rangeOf, sinceOf, type Span } from "../ranges.ts";
import { get } from "../service/api.ts";
import type { Overview, SignedIn } from "../service/wire.ts";

/** How many tools are told apart: at first, and at most. */
export const TOOLS = 25;
export const MOST_TOOLS = 200;

export interface Asked {
  /** A time that ends now. It counts if `span` is null. */
  range: Range;
  /** A fixed time. */
  span: Span | null;
  /** The one tool, or tenant, that is shown. */
  tool: string | null;
  isFleet: boolean;
  top: number;
}

export function asked(query: URLSearchParams, who: SignedIn): Asked {
  return {
    range: rangeOf(query) ?? "24h",
    span: fixedSpan(query),
    tool: query.get("tool"),
    isFleet: query.has("fleet") && who.scopes.includes("fleet"),
    top: query.has("all") ? MOST_TOOLS : TOOLS,
  };
}

/** Ask for the figures of all tools, or of one. */
export function figures({ range, span, isFleet, top }: Asked, tool: string | null, signal: AbortSignal): Promise<Overview> {
  const time = span ?? { since: sinceOf(range) };
  return get<Overview>(isFleet ? "admin/overview" : "overview", { ...time, tool, top }, signal);
}
