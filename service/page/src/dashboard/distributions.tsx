// Distributions as bars, with their numbers as a table.
import { Bar, Panel } from "../parts/boxes.tsx";
import { Name } from "../parts/text.tsx";
import { binaryBytes, count, percent } from "../format.ts";
import type { StatsRow } from "../service/wire.ts";
import { byMode, bySize } from "./sums.ts";

export function Sizes({ rows }: { rows: StatsRow[] }) {
  const sizes = bySize(rows);
  const last = sizes.filter(({ bound }) => bound !== Infinity).at(-1)?.bound ?? 0;
  const name = (bound: number) => (bound === Infinity ? `more than ${binaryBytes(last)}` : `up to ${binaryBytes(bound)}`);
  return <Bars title="Sizes of captures" of="Size" what="Captures" bars={sizes.map((each) => [name(each.bound), each.captures])} />;
}

export function Modes({ rows }: { rows: StatsRow[] }) {
  return <Bars title="How captures are read" of="Mode" what="Reads" bars={byMode(rows).map((each) => [each.mode, each.reads])} />;
}

function Bars({ title, of, what, bars }: { title: string; of: string; what: string; bars: [string, number][] }) {
  const most = Math.max(1, ...bars.map(([, amount]) => amount));
  const all = bars.reduce((sum, [, amount]) => sum + amount, 0);
  return (
    <Panel title={title}>
      {bars.length === 0 && <p class="quiet">None in this time.</p>}
      {bars.length > 0 && (
        <table class="bars">
          <thead><tr><th scope="col">{of}</th><th scope="col"><span class="unseen">Bar</span></th><th scope="col" class="figure">{what}</th><th scope="col" class="figure">Share</th></tr></thead>
          <tbody>
            {bars.map(([name, amount]) => (
              <tr key={name}>
                <th scope="row"><Name text={name} /></th>
                <td><Bar share={amount / most} /></td>
                <td class="figure">{count(amount)}</td>
                <td class="figure quiet">{percent(amount, all)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}
