// The charts of the dashboard, and all that they show as a table.
import { useLoaded } from "../load.ts";
import { bytes, count, percent, rough } from "../format.ts";
import { Choice, Scrolling } from "../parts/boxes.tsx";
import { Trouble } from "../parts/states.tsx";
import { Name } from "../parts/text.tsx";
import { setQuery, useRoute } from "../route.ts";
import type { Overview } from "../service/wire.ts";
import { type Asked, figures } from "./asked.ts";
import { Chart, type Series } from "./chart.tsx";
import { type Group, OTHER, overTime, type Point } from "./sums.ts";

/** How many tools, or tenants, one chart tells apart. */
const COMPARED = 5;

interface ChartsProps {
  found: Overview;
  view: Asked;
  groups: Group[];
}

export function Charts({ found, view, groups }: ChartsProps) {
  const { query } = useRoute();
  const points = overTime(found);
  const common = { times: points.map((point) => point.start), step: found.step };
  const isTokens = query.get("kept") === "tokens";
  const names = query.has("compare") && view.tool === null ? namesOf(groups) : [];
  const compared = useCompared(view, names, points, [found.until]);
  const kinds = view.isFleet ? "tenants" : "tools";
  return (
    <>
      <div class="charts">
        <Chart
          {...common}
          title="Outputs too large"
          unit="percent"
          series={compared.series ?? [{ name: "all outputs", values: points.map(rateOf) }]}
          aside={groups.length > 1 && (
            <Choice
              label="Outputs too large of"
              options={[["all", "All"], ["each", `The ${kinds}`]]}
              chosen={names.length ? "each" : "all"}
              onChoose={(which) => setQuery({ compare: which === "each" ? 1 : null }, true)}
            />
          )}
        />
        <Chart
          {...common}
          title="Kept out of conversations"
          unit={isTokens ? "count" : "bytes"}
          of="tokens"
          series={[{ name: "kept out", values: points.map(isTokens ? (point) => point.tokens : keptOut), isBars: true }]}
          aside={<Choice label="Kept out, in" options={[["bytes", "Bytes"], ["tokens", "Tokens"]]} chosen={isTokens ? "tokens" : "bytes"} onChoose={(unit) => setQuery({ kept: unit === "tokens" ? unit : null }, true)} />}
        />
        <Chart
          {...common}
          title="Captures"
          unit="count"
          of="captures"
          series={[{ name: "captured", values: points.map((point) => point.captures), isBars: true }, { name: "read back for the first time", values: points.map((point) => point.read) }]}
        />
        <Chart {...common} title="Run again after a notice" unit="count" of="bursts of calls of the same tool" series={[{ name: "run again", values: points.map((point) => point.bursts), isBars: true }]} />
      </div>
      {compared.problem && <Trouble problem={compared.problem} />}
      <details class="as-table">
        <summary>These charts as tables</summary>
        <Points points={points} />
        {compared.series && <Compared times={common.times} series={compared.series} />}
      </details>
    </>
  );
}

function rateOf(point: Point): number | null {
  return point.outputs ? (100 * point.spilled) / point.outputs : null;
}

function keptOut(point: Point): number {
  return Math.max(0, point.bytes - point.kept);
}

function namesOf(groups: Group[]): string[] {
  return groups.filter((each) => each.name && each.name !== OTHER && each.outputs > 0).slice(0, COMPARED).map((each) => each.name);
}

/** The rates of some tools or tenants, each asked for by itself: the figures of all of them have no times. */
function useCompared(view: Asked, names: string[], points: Point[], inputs: unknown[]): { series?: Series[]; problem?: Error } {
  const found = useLoaded(
    (signal) => Promise.all(names.map(async (name): Promise<Series> => ({ name, values: ratesAt(points, overTime(await figures(view, name, signal))) }))),
    [JSON.stringify(view), names.join("\n"), ...inputs],
  );
  if (names.length === 0) return {};
  return { ...(found.answer?.length ? { series: found.answer } : {}), ...(found.problem ? { problem: found.problem } : {}) };
}

/** Return the rates at the times of other points: two answers may be of a minute each. */
function ratesAt(points: Point[], own: Point[]): (number | null)[] {
  const rates = new Map(own.map((point) => [point.start, rateOf(point)]));
  return points.map((point) => rates.get(point.start) ?? null);
}

function Points({ points }: { points: Point[] }) {
  const shown = points.filter((point) => point.outputs || point.captures || point.read || point.bursts).reverse();
  return (
    <Scrolling isShort label="The charts as a table">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th><th scope="col" class="figure">Outputs</th><th scope="col" class="figure">Too large</th>
            <th scope="col" class="figure">Share</th><th scope="col" class="figure">Bytes kept out</th><th scope="col" class="figure">Tokens kept out</th>
            <th scope="col" class="figure">Captures</th><th scope="col" class="figure">Read back</th><th scope="col" class="figure">Run again</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((point) => (
            <tr key={point.start}>
              <td>{instant(point.start)}</td>
              <td class="figure">{count(point.outputs)}</td>
              <td class="figure">{count(point.spilled)}</td>
              <td class="figure">{percent(point.spilled, point.outputs)}</td>
              <td class="figure">{bytes(keptOut(point))}</td>
              <td class="figure" title={count(point.tokens)}>{rough(point.tokens)}</td>
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

function Compared({ times, series }: { times: number[]; series: Series[] }) {
  const rows = times.map((time, at) => ({ time, values: series.map(({ values }) => values[at] ?? null) })).reverse();
  return (
    <Scrolling isShort label="Shares of outputs too large">
      <table>
        <thead><tr><th scope="col">From</th>{series.map(({ name }) => <th key={name} scope="col" class="figure"><Name text={name} /></th>)}</tr></thead>
        <tbody>
          {rows.filter(({ values }) => values.some((value) => value !== null)).map(({ time, values }) => (
            <tr key={time}>
              <td>{instant(time)}</td>
              {values.map((value, at) => <td key={at} class="figure">{value === null ? "–" : percent(value, 100)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}

function instant(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString();
}
