// One line as it is drawn: its number, its text with colours, and marks of what matched.
import { bytes } from "../format.ts";
import type { Highlighter } from "./highlighter.ts";
import type { Line } from "./lines.ts";
import { pieces } from "./marks.ts";
import { spans } from "./text.ts";

interface RowProps {
  number: number;
  /** Digits of the largest number. */
  digits: number;
  line: Line | undefined;
  isSelected: boolean;
  isMatch: boolean;
  isSeen: boolean;
  highlighter: Highlighter | null;
  onSelect(extend: boolean): void;
  onReadOn?: () => void;
  onRestart?: () => void;
}

export function Row({ number, digits, line, isSelected, isMatch, isSeen, highlighter, onSelect, onReadOn, onRestart }: RowProps) {
  return (
    <div class={`row ${isSelected ? "selected" : ""} ${isMatch ? "match" : ""} ${isSeen ? "seen" : ""}`} data-line={number}>
      <button
        type="button"
        class="number"
        style={{ width: `${digits}ch` }}
        tabIndex={-1}
        aria-label={`Line ${number}${isSeen ? ", seen by the model" : ""}`}
        onClick={(event) => onSelect(event.shiftKey)}
      >
        {number}
      </button>
      <code dir="ltr">
        {line?.skipped ? (
          <button type="button" class="small more" onClick={onRestart} title="Show the beginning of this line again">
            … {bytes(line.skipped)} before
          </button>
        ) : null}
        {line === undefined ? <span class="quiet">…</span> : <Content text={line.text} highlighter={isMatch ? highlighter : null} />}
        {line?.more !== undefined && onReadOn && (
          <button type="button" class="small more" onClick={onReadOn} title={`${bytes(line.more)} of this line are behind you`}>
            read on in this line
          </button>
        )}
      </code>
    </div>
  );
}

function Content({ text, highlighter }: { text: string; highlighter: Highlighter | null }) {
  const found = spans(text);
  const marks = highlighter?.marks(found.map((span) => span.text).join("")) ?? [];
  return (
    <>
      {pieces(found, marks).map(({ span, text: part, isMarked }, at) => (
        <span key={at} class={span.styles.join(" ")}>{isMarked ? <mark>{part}</mark> : part}</span>
      ))}
    </>
  );
}
