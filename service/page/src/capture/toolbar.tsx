// What leads through the lines of a capture: to a line, to errors, to what the model saw, to the end.
import { bytes, count, lineCount } from "../format.ts";
import { Copy } from "../parts/copy.tsx";
import { setQuery } from "../route.ts";
import type { Entry, Severity, Summary } from "../service/wire.ts";
import { textOf } from "../viewer/copied.ts";
import { type Range, seenCount } from "../viewer/seen.ts";

/** The field that the key `:` goes to. */
export const JUMP = "jump";

interface MovesProps {
  entry: Entry;
  selected: Range | null;
  isWrapped: boolean;
  /** Whether the end is in view. */
  isAtEnd: boolean;
  onWrap(): void;
  onGo(line: number): void;
}

export function Moves({ entry, selected, isWrapped, isAtEnd, onWrap, onGo }: MovesProps) {
  return (
    <span class="tools moves">
      {selected && <CopySelected entry={entry} selected={selected} />}
      {entry.state === "live" && <Follow isAtEnd={isAtEnd} onEnd={() => onGo(entry.lines)} />}
      <JumpField total={entry.lines} onGo={onGo} />
      <span class="choice">
        <button type="button" class="small" aria-label="First line" title="First line (g)" onClick={() => onGo(1)}>⇤</button>
        <button type="button" class="small" aria-label="Last line" title="Last line (G)" onClick={() => onGo(entry.lines)}>⇥</button>
      </span>
      <button type="button" class="small toggle" aria-pressed={isWrapped} title="Wrap long lines (w)" onClick={onWrap}>Wrap</button>
    </span>
  );
}

function JumpField({ total, onGo }: { total: number; onGo(line: number): void }) {
  const pressed = (event: preact.TargetedKeyboardEvent<HTMLInputElement>) => {
    const line = Math.min(Number(event.currentTarget.value.replace(/\D/g, "")), total);
    if (event.key !== "Enter" || !line) return;
    setQuery({ lines: line });
    onGo(line);
    event.currentTarget.blur();
  };
  return (
    <label class="small">
      Line <input id={JUMP} class="jump" inputMode="numeric" autocomplete="off" title="Go to a line (:)" onKeyDown={pressed} />
    </label>
  );
}

/** How many lines look like errors, or warnings; their room is there before the numbers are. */
export function Severities({ summary, onNext }: { summary: Summary | undefined; onNext(numbers: number[]): void }) {
  return (
    <span class="choice">
      <Severe name="errors" found={summary?.errors} onNext={onNext} />
      <Severe name="warnings" found={summary?.warnings} onNext={onNext} />
      {summary?.truncated && <span class="quiet small"> in the first {bytes(summary.scanned_bytes)}</span>}
    </span>
  );
}

/** Click to go to the next. */
function Severe({ name, found, onNext }: { name: string; found: Severity | undefined; onNext(numbers: number[]): void }) {
  if (!found) return <button type="button" class="small severe" disabled>… {name}</button>;
  const isMore = found.count > found.line_numbers.length;
  const title = isMore ? `The first ${count(found.line_numbers.length)} are on the map; search finds the others` : `Go to the next of the ${name}`;
  const shown = found.count === 1 ? name.replace(/s$/, "") : name;
  return (
    <button type="button" class={`small severe ${name}`} disabled={!found.count} title={title} onClick={() => onNext(found.line_numbers)}>
      {count(found.count)} {shown}
    </button>
  );
}

const FOLLOW_HELP = "Go on with the output as it grows (G). Scroll up to stay where you are.";

function Follow({ isAtEnd, onEnd }: { isAtEnd: boolean; onEnd(): void }) {
  return (
    <button type="button" class="small toggle" aria-pressed={isAtEnd} title={FOLLOW_HELP} onClick={onEnd}>
      {isAtEnd ? "Following" : "Follow"}
    </button>
  );
}

const SEEN_HELP =
  "Whole in the notice that stood for this output in the conversation: marked at the left. The model may have seen more, in part.";

export function SeenCount({ seen, isBeside, onNext }: { seen: Range[]; isBeside: boolean; onNext(numbers: number[]): void }) {
  return (
    <span class="choice">
      <button type="button" class="small seen-count" title={SEEN_HELP} onClick={() => onNext(seen.map(([first]) => first))}>
        {lineCount(seenCount(seen))} seen by the model
      </button>
      <button type="button" class="small toggle" aria-pressed={isBeside} title="Show them beside the whole output (p)" onClick={() => setQuery({ seen: isBeside ? null : 1 }, true)}>
        Beside
      </button>
    </span>
  );
}

/** Copy what is selected, or a link to it. */
function CopySelected({ entry, selected: [first, last] }: { entry: Entry; selected: Range }) {
  const isOne = first === last;
  return (
    <>
      <Copy text={() => textOf(entry.id, first, last)} label={isOne ? "Copy line" : `Copy ${lineCount(last - first + 1)}`} />
      <Copy text={() => Promise.resolve(location.href)} label={`Copy link to ${isOne ? `line ${first}` : `lines ${first}–${last}`}`} title="A link that opens these lines" />
      <button type="button" class="small" aria-label="Select nothing" title="Select nothing" onClick={() => setQuery({ lines: null }, true)}>✕</button>
    </>
  );
}
