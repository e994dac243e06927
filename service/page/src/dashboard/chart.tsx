// One chart with its title, its unit, what it shows under the pointer, and all of it as a text.
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, minute, rough } from "../format.ts";
import { Name } from "../parts/text.tsx";
import { zoom } from "./span.tsx";

export type Unit = "percent" | "bytes" | "count";

export interface Series {
  name: string;
  values: (number | null)[];
  isBars?: boolean;
}

/** What is drawn, for the module that draws it, which comes later. */
export interface Drawing {
  times: number[];
  /** Seconds between two times. */
  step: number;
  series: Series[];
  show(value: number): string;
  /** Where the axis ends, for the largest value. */
  most(value: number): number;
  onHover(at: number | null): void;
  onZoom(since: number, until: number): void;
}

interface ChartProps {
  title: string;
  unit: Unit;
  /** The unit in words, if it is none of bytes and percent. */
  of?: string;
  times: number[];
  step: number;
  series: Series[];
  aside?: preact.ComponentChildren;
}

const SHOW: Record<Unit, (value: number) => string> = {
  percent: (value) => `${value.toFixed(value > 0 && value < 9.95 ? 1 : 0)}%`,
  bytes,
  count: (value) => rough(value),
};
const MOST: Record<Unit, (value: number) => number> = {
  percent: (value) => Math.min(100, Math.max(1, value * 1.15)),
  bytes: (value) => Math.max(1000, value * 1.15),
  count: (value) => Math.max(4, value * 1.15),
};

export function Chart({ title, unit, of, times, step, series, aside }: ChartProps) {
  const [pointed, setAt] = useState<number | null>(null);
  const at = pointed !== null && pointed < times.length ? pointed : null;  // the values may be others by now
  const place = usePlot({ times, step, series, show: SHOW[unit], most: MOST[unit], onHover: setAt, onZoom: zoom });
  const what = { percent: "in percent of all outputs", bytes: "in bytes", count: `number of ${of}` }[unit];
  return (
    <figure class="panel">
      <figcaption>
        <h2>{title}</h2> <span class="quiet small">{what}</span>
        {aside}
      </figcaption>
      <p class="legend small" aria-hidden="true">
        {series.length === 1 && at === null && <span class="quiet">{extent(series[0]!, SHOW[unit])}</span>}
        {series.length === 1 && at !== null && <strong>{shownAt(series[0]!, at, SHOW[unit])}</strong>}
        {series.length > 1 && series.map((each, index) => (
          <span key={each.name}>
            <span class={`swatch swatch-${index + 1}`} /> <Name text={each.name} empty="without a name" />
            {at !== null && <strong> {shownAt(each, at, SHOW[unit])}</strong>}
          </span>
        ))}
        <span class="at quiet">{at === null ? "" : minute(new Date(times[at]! * 1000).toISOString())}</span>
      </p>
      <div ref={place} class={`chart ${isEmpty(series) ? "nothing" : ""}`} role="img" aria-label={`${title}, ${what}. ${series.map((each) => `${each.name}: ${extent(each, SHOW[unit])}.`).join(" ")} The table below has every value.`} />
    </figure>
  );
}

function shownAt({ values }: Series, at: number, show: (value: number) => string): string {
  const value = values[at];
  return value === null || value === undefined ? "–" : show(value);
}

/** The values of a series in words. */
function extent({ values }: Series, show: (value: number) => string): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "no values";
  if (new Set(known).size === 1) return show(known[0]!);
  return `from ${show(Math.min(...known))} to ${show(Math.max(...known))}, at last ${show(known.at(-1)!)}`;
}

function isEmpty(series: Series[]): boolean {
  return series.every(({ values, isBars }) => values.every((value) => value === null || (isBars && value === 0)));
}

/** Draw into the element that gets what this returns, once the library for it has come. Axes without values tell nothing. */
function usePlot(drawing: Drawing) {
  const place = useRef<HTMLDivElement>(null);
  const { times, series } = drawing;
  useEffect(() => {
    if (isEmpty(series)) return;
    let close = (): void => undefined;
    let isOver = false;
    const failed = (): void => undefined;  // without the library the figures and their table are all there
    void import("./plot.ts").then(({ draw }) => {
      if (!isOver && place.current) close = draw(place.current, drawing);
    }, failed);
    return () => {
      isOver = true;
      close();
    };
  }, [times.join(), JSON.stringify(series)]);
  return place;
}
