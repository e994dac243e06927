// What leads through the lines of a capture: to a line, to errors, to what the model saw, to the end.
import type { Entry, Severity, Summary } from "../api.ts";
import { bytes, count, lineCount } from "../format.ts";
import { Copy } from "../parts/small.tsx";
import { setQuery } from "../route.ts";
import { textOf } from "../viewer/lines.ts";
import { type Range, seenCount } from "../viewer/seen.ts";

/** The field that the key `:` goes to. */
export const JUMP = "jump";

interface Props {
  entry: Entry;
  selected: Range | null;
  onGo(line: number): void;
  children: preact.ComponentChildren;
}

export function Toolbar({ entry, selected, onGo, children }: Props) {
  return (
    <div class="tools">
      <JumpField total={entry.lines} onGo={onGo} />
      <Ends total={entry.lines} onGo={onGo} />
      {entry.state === "live" && <Follow onEnd={() => onGo(entry.lines)} />}
      {children}
      {selected && <CopySelected entry={entry} selected={selected} />}
    </div>
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
      Line <input id={JUMP} class="jump" inputMode="numeric" onKeyDown={pressed} />
    </label>
  );
}

export function WrapBox({ isWrapped, onChange }: { isWrapped: boolean; onChange(): void }) {
  return (
    <label class="small">
      <input type="checkbox" checked={isWrapped} onChange={onChange} /> Wrap
    </label>
  );
}

/** How many lines look like errors, or warnings. */
export function Severities({ summary, onNext }: { summary: Summary; onNext(numbers: number[]): void }) {
  return (
    <span class="small">
      <Severe name="errors" found={summary.errors} onNext={onNext} /> <Severe name="warnings" found={summary.warnings} onNext={onNext} />
      {summary.truncated && <span class="quiet"> in the first {bytes(summary.scanned_bytes)}</span>}
    </span>
  );
}

/** Click to go to the next. */
function Severe({ name, found, onNext }: { name: string; found: Severity; onNext(numbers: number[]): void }) {
  const isMore = found.count > found.line_numbers.length;
  const title = isMore ? `The first ${count(found.line_numbers.length)} are on the map; search finds the others` : `Go to the next of the ${name}`;
  const shown = found.count === 1 ? name.replace(/s$/, "") : name;
  return (
    <button type="button" class="small" disabled={!found.count} title={title} onClick={() => onNext(found.line_numbers)}>
      {count(found.count)} {shown}
    </button>
  );
}

const FOLLOW_HELP = "Go on with the output as it grows (G). Scroll up to stay where you are.";

function Follow({ onEnd }: { onEnd(): void }) {
  return (
    <button type="button" class="small" title={FOLLOW_HELP} onClick={onEnd}>
      <span class="state live">live</span> Go to the end
    </button>
  );
}

const SEEN_HELP =
  "Whole in the notice that stood for this output in the conversation: marked at the left. The model may have seen more, in part.";

export function SeenCount({ seen, isBeside, onNext }: { seen: Range[]; isBeside: boolean; onNext(numbers: number[]): void }) {
  return (
    <span>
      <button type="button" class="small seen-count" title={SEEN_HELP} onClick={() => onNext(seen.map(([first]) => first))}>
        {lineCount(seenCount(seen))} seen by the model
      </button>{" "}
      <button type="button" class="small toggle" aria-pressed={isBeside} title="Show them beside the whole output (p)" onClick={() => setQuery({ seen: isBeside ? null : 1 }, true)}>
        beside
      </button>
    </span>
  );
}

function Ends({ total, onGo }: { total: number; onGo(line: number): void }) {
  return (
    <span>
      <button type="button" class="small" aria-label="First line (g)" title="First line (g)" onClick={() => onGo(1)}>⇤</button>{" "}
      <button type="button" class="small" aria-label="Last line (G)" title="Last line (G)" onClick={() => onGo(total)}>⇥</button>
    </span>
  );
}

/** Copy what is selected, or a link to it. */
function CopySelected({ entry, selected: [first, last] }: { entry: Entry; selected: Range }) {
  const isOne = first === last;
  return (
    <>
      <Copy text={() => textOf(entry.id, first, last)} label={isOne ? "Copy line" : `Copy ${lineCount(last - first + 1)}`} />
      <Copy text={location.href} label={`Copy link to ${isOne ? `line ${first}` : `lines ${first}–${last}`}`} />
    </>
  );
}
