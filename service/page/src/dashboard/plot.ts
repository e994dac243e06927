// Values over time, by uPlot. It is loaded once a chart is there to be drawn.
import uPlot from "uplot";
import type { Drawing } from "./chart.tsx";

const HEIGHT = 170;
/** Lines of so few values get points too. */
const FEW = 40;
/** Charts of one key show the same instant. */
const SYNC = "dashboard";
const DAY = 86_400;

const TIME = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const DATE = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

/** Draw into an element, and again when its width or the theme changes. Return what removes the chart. */
export function draw(place: HTMLElement, drawing: Drawing): () => void {
  let chart = made(place, drawing);
  const observer = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT }));
  observer.observe(place);
  const redraw = () => {
    chart.destroy();
    chart = made(place, drawing);
  };
  addEventListener("themechange", redraw);
  return () => {
    observer.disconnect();
    removeEventListener("themechange", redraw);
    chart.destroy();
  };
}

function made(place: HTMLElement, drawing: Drawing): uPlot {
  const { times, series, show } = drawing;
  const axis = { stroke: colourOf(place, "--quiet"), grid: { stroke: colourOf(place, "--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const options: uPlot.Options = {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 28, 0, 0],
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, sync: { key: SYNC }, points: { size: 7 } },
    hooks: hooksOf(drawing),
    scales: { x: { range: [times[0] ?? 0, (times.at(-1) ?? 0) + (drawing.step)] }, y: { range: (_chart, _least, most) => [0, drawing.most(most)] } },
    axes: [
      { ...axis, space: 64, gap: 8, values: (_chart, ticks, _axis, _space, step) => ticks.map((tick, at) => dated(tick, at === 0, step)) },
      { ...axis, space: 36, size: 64, values: (_chart, ticks) => ticks.map(show) },
    ],
    series: [{}, ...series.map((each, at) => styleOf(each, at, times, place))],
  };
  return new uPlot(options, [times, ...series.map(({ values }) => values)], place);
}

function styleOf({ values, isBars }: Drawing["series"][number], at: number, times: number[], place: HTMLElement): uPlot.Series {
  const colour = colourOf(place, `--series-${at + 1}`);
  if (isBars) return { stroke: colour, fill: colour, width: 0, paths: uPlot.paths.bars!({ size: [0.7, 40], align: 1 }), points: { show: false } };
  const isFew = values.filter((value) => value !== null).length < FEW || times.length < FEW;
  return { stroke: colour, width: 2, spanGaps: false, points: { show: isFew, size: 5, fill: colour } };
}

function hooksOf({ onHover, onZoom }: Drawing): uPlot.Hooks.Arrays {
  return {
    setCursor: [(chart) => onHover(chart.cursor.left! >= 0 ? chart.cursor.idx ?? null : null)],
    setSelect: [
      ({ select: { left, width }, posToVal }) => {
        if (width > 0) onZoom(posToVal(left, "x"), posToVal(left + width, "x"));
      },
    ],
  };
}

/** A tick of the time: its day where one begins, and at the first tick. */
function dated(seconds: number, isFirst: boolean, step: number): string {
  const at = new Date(seconds * 1000);
  if (step >= DAY) return DATE.format(at);
  const isDayBegun = at.getHours() === 0 && at.getMinutes() === 0;
  return isFirst || isDayBegun ? `${TIME.format(at)}\n${DATE.format(at)}` : TIME.format(at);
}

/** Return a colour of the theme as a canvas takes it. */
function colourOf(place: HTMLElement, name: string): string {
  const sample = document.createElement("span");
  sample.style.color = `var(${name})`;
  place.append(sample);
  const colour = getComputedStyle(sample).color;
  sample.remove();
  return colour;
}
