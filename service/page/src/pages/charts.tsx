// The charts of the dashboard, each with what it shows as a text and as a table.
import { useEffect, useRef } from "preact/hooks";
import type { Overview } from "../api.ts";
import { bytes, count, percent } from "../format.ts";
import { Scrolling } from "../parts/small.tsx";
import { zoom } from "./span.tsx";
import { overTime, type Point } from "./sums.ts";

/** Draw two series over time. The library for charts comes once the figures are shown. */
export function Charts({ found }: { found: Overview }) {
  const points = overTime(found);
  const rate = points.map((point) => (point.outputs ? (100 * point.spilled) / point.outputs : null));
  const kept = points.map((point) => Math.max(0, point.bytes - point.kept));
  const times = points.map((point) => point.start);
  return (
    <>
      <div class="charts">
        <Chart title="Outputs too large, in percent" unit="%" times={times} values={rate} />
        <Chart title="Bytes kept out of conversations" unit="B" times={times} values={kept} />
      </div>
      <details>
        <summary>These charts as a table</summary>
        <Points points={points.filter((point) => point.outputs || point.captures).reverse()} />
      </details>
    </>
  );
}

function Points({ points }: { points: Point[] }) {
  return (
    <Scrolling isShort label="The charts as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th><th scope="col" class="figure">Outputs</th><th scope="col" class="figure">Too large</th>
            <th scope="col" class="figure">Share</th><th scope="col" class="figure">Bytes kept out</th><th scope="col" class="figure">Captures</th>
            <th scope="col" class="figure">Read back</th><th scope="col" class="figure">Run again</th>
          </tr>
        </thead>
        <tbody>
          {points.map((point) => (
            <tr key={point.start}>
              <td>{new Date(point.start * 1000).toLocaleString()}</td>
              <td class="figure">{count(point.outputs)}</td>
              <td class="figure">{count(point.spilled)}</td>
              <td class="figure">{percent(point.spilled, point.outputs)}</td>
              <td class="figure">{bytes(Math.max(0, point.bytes - point.kept))}</td>
              <td class="figure">{count(point.captures)}</td>
              <td class="figure">{count(point.read)}</td>
              <td class="figure">{count(point.bursts)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}

function Chart({ title, unit, times, values }: { title: string; unit: string; times: number[]; values: (number | null)[] }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let close = (): void => undefined;
    let isOver = false;
    void import("../parts/chart.ts").then(({ draw }) => {
      if (!isOver && place.current) close = draw(place.current, times, values, unit, zoom);
    });
    return () => {
      isOver = true;
      close();
    };
  }, [times.join(), values.join(), unit]);
  const known = values.filter((value) => value !== null);
  const shown = (value: number) => (unit === "B" ? bytes(value) : `${value.toFixed(1)} %`);
  const text = known.length ? `from ${shown(Math.min(...known))} to ${shown(Math.max(...known))}` : "no values";
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div ref={place} class="chart" role="img" aria-label={`${title}: ${text}`} />
    </figure>
  );
}
