// What stands above the lines of a capture: search, what is marked in them, and where to go.
import type { RefObject } from "preact";
import type { Entry, Summary } from "../service/wire.ts";
import type { Range } from "../viewer/seen.ts";
import type { Asked } from "./asked.ts";
import { Commands, mayHaveCommands } from "./commands.tsx";
import { OnlyMatches, SearchField, SearchResult } from "./search.tsx";
import { Moves, SeenCount, Severities } from "./toolbar.tsx";
import type { Searching } from "./use_search.ts";

interface ToolsProps {
  entry: Entry;
  view: Asked;
  field: RefObject<HTMLInputElement | null>;
  searching: Searching;
  summary: Summary | undefined;
  seen: Range[];
  isWrapped: boolean;
  isAtEnd: boolean;
  /** Go to the next of some lines. */
  onWalk(numbers: number[]): void;
  onWrap(): void;
  onGo(line: number): void;
}

export function Tools({ entry, view, field, searching, summary, seen, isWrapped, isAtEnd, onWalk, onWrap, onGo }: ToolsProps) {
  const { wanted, selected, context, isBeside } = view;
  return (
    <div class="toolbar">
      <span class="tools">
        <SearchField wanted={wanted} field={field} />
        <SearchResult wanted={wanted} searching={searching} canMove={context === undefined} />
        {wanted.pattern && <OnlyMatches context={context} />}
      </span>
      <span class="tools">
        {mayHaveCommands(entry) && <Commands entry={entry} onGo={onGo} />}
        <Severities summary={summary} onNext={onWalk} />
        {seen.length > 0 && <SeenCount seen={seen} isBeside={isBeside} onNext={onWalk} />}
      </span>
      <Moves entry={entry} selected={selected} isWrapped={isWrapped} isAtEnd={isAtEnd} onWrap={onWrap} onGo={onGo} />
    </div>
  );
}
