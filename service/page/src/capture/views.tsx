// The lines of a capture, all or only those that match, and beside them what the model saw.
import type { RefObject } from "preact";
import { lineCount } from "../format.ts";
import { setQuery } from "../route.ts";
import { isGone } from "../service/api.ts";
import type { Entry } from "../service/wire.ts";
import type { Highlighter } from "../viewer/highlighter.ts";
import { Matches } from "../viewer/matches.tsx";
import type { Marks } from "../viewer/minimap.tsx";
import { Preview } from "../viewer/preview.tsx";
import type { Range } from "../viewer/seen.ts";
import { terminalColumns } from "../viewer/text.ts";
import { View, type ViewHandle } from "../viewer/view.tsx";
import type { Asked } from "./asked.ts";

interface ViewsProps {
  entry: Entry;
  view: Asked;
  handle: RefObject<ViewHandle | null>;
  seen: Range[];
  marks: Marks;
  highlighter: Highlighter | null;
  isWrapped: boolean;
  onSelect(line: number): void;
  onGo(line: number): void;
  /** The end has come into view, or gone out of it. */
  onEnd(isAtEnd: boolean): void;
  onGone(): void;
}

export function Views(props: ViewsProps) {
  const { entry, view, seen, onSelect } = props;
  const isBeside = view.isBeside && seen.length > 0;
  return (
    <div class="views">
      {isBeside && <Preview reference={entry.id} total={entry.lines} seen={seen} onGo={onSelect} />}
      <section class="whole" aria-label="The whole output">
        {isBeside && <h2>The whole output: {lineCount(entry.lines)}</h2>}
        {view.context === undefined ? <AllLines {...props} /> : <MatchingLines {...props} context={view.context} />}
      </section>
    </div>
  );
}

function AllLines({ entry, view: { wanted, selected }, handle, seen, marks, highlighter, isWrapped, onEnd, onGone }: ViewsProps) {
  return (
    <View
      reference={entry.id}
      total={entry.lines}
      size={entry.size}
      columns={terminalColumns(entry.labels)}
      isWrapped={isWrapped}
      startsAtEnd={entry.state === "live" && !selected && !wanted.pattern}
      selected={selected}
      seen={seen}
      marks={marks}
      highlighter={highlighter}
      onSelect={(first, last) => setQuery({ lines: first === last ? first : `${first}-${last}` }, true)}
      onEnd={onEnd}
      onProblem={(problem) => isGone(problem) && onGone()}
      handle={handle}
    />
  );
}

function MatchingLines({ entry, view: { wanted }, context, highlighter, onGo }: ViewsProps & { context: number }) {
  const leave = (line: number) => {
    setQuery({ only: null, lines: line });
    setTimeout(() => onGo(line));  // all lines are drawn by then
  };
  return <Matches reference={entry.id} total={entry.lines} wanted={wanted} context={context} highlighter={highlighter} onGo={leave} />;
}
