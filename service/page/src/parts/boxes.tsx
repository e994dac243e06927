// Boxes: panels, tables that scroll, and choices of one among few.
import type { ComponentChildren } from "preact";

export function Panel({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A table that scrolls inside of its box, by keys too. */
export function Scrolling({ label, isShort = false, children }: { label: string; isShort?: boolean; children: ComponentChildren }) {
  return (
    <div class={`scrolling ${isShort ? "short" : ""}`} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  options: readonly (readonly [value: T, label: string])[];
  /** None if nothing of them is chosen. */
  chosen: T | null;
  onChoose(value: T): void;
}

/** One of few, all in view. */
export function Choice<T extends string>({ label, options, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <span class="choice" role="group" aria-label={label}>
      {options.map(([value, name]) => (
        <button key={value} type="button" class="small toggle" aria-pressed={value === chosen} onClick={() => onChoose(value)}>
          {name}
        </button>
      ))}
    </span>
  );
}

/** A share of the largest, as a bar; nothing if it is negative. It only repeats a number that stands beside it. */
export function Bar({ share }: { share: number }) {
  if (share < 0) return null;
  return <span class="bar" aria-hidden="true"><span style={{ width: `${Math.min(100, Math.max(share > 0 ? 1 : 0, 100 * share))}%` }} /></span>;
}
