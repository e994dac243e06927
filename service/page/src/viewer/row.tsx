// One line as it is drawn: its number, its text with colours, and marks of what matched.
import type { Line } from "./lines.ts";
import { spans } from "./text.ts";

interface RowProps {
  number: number;
  digits: number;
  line: Line | undefined;
  isSelected: boolean;
  isMatch: boolean;
  isSeen: boolean;
  highlight: RegExp | null;
  onSelect(extend: boolean): void;
  onReadOn(): void;
}

export function Row({ number, digits, line, isSelected, isMatch, isSeen, highlight, onSelect, onReadOn }: RowProps) {
  return (
    <div class={`row ${isSelected ? "selected" : ""} ${isMatch ? "match" : ""} ${isSeen ? "seen" : ""}`} data-line={number}>
      <button
        type="button"
        class="number"
        style={{ width: `${digits + 1}ch` }}
        tabIndex={-1}
        aria-label={`Line ${number}${isSeen ? ", seen by the model" : ""}`}
        onClick={(event) => onSelect(event.shiftKey)}
      >
        {number}
      </button>
      <code dir="ltr">
        {line === undefined ? <span class="quiet">…</span> : <Content text={line.text} highlight={isMatch ? highlight : null} />}
        {line?.more !== undefined && (
          <button type="button" class="small more" onClick={onReadOn}>
            read on in this line
          </button>
        )}
      </code>
    </div>
  );
}

function Content({ text, highlight }: { text: string; highlight: RegExp | null }) {
  return (
    <>
      {spans(text).map((span) => (
        <span class={span.styles.join(" ")}>{highlight ? marked(span.text, highlight) : span.text}</span>
      ))}
    </>
  );
}

function marked(text: string, pattern: RegExp) {
  const parts = [];
  let position = 0;
  for (const match of text.matchAll(pattern)) {
    if (!match[0]) continue;
    parts.push(text.slice(position, match.index), <mark>{match[0]}</mark>);
    position = match.index + match[0].length;
  }
  return [...parts, text.slice(position)];
}
