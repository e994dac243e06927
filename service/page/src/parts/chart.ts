// A line over time, by uPlot. It is loaded once a chart is there to be drawn.
import uPlot from "uplot";
import { bytes } from "../format.ts";

const HEIGHT = 180;
/** So few values are drawn as points too: one without neighbours has no line. */
const FEW = 30;

/**
 * Draw into an element, and again when its width or the theme changes. `onZoom` gets a time that is dragged over, in seconds.
 * Return what removes the chart.
 */
export function draw(place: HTMLElement, times: number[], values: (number | null)[], unit: string, onZoom: (since: number, until: number) => void): () => void {
  let chart = made(place, times, values, unit, onZoom);
  const observer = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT }));
  observer.observe(place);
  const redraw = () => {
    chart.destroy();
    chart = made(place, times, values, unit, onZoom);
  };
  addEventListener("themechange", redraw);
  return () => {
    observer.disconnect();
    removeEventListener("themechange", redraw);
    chart.destroy();
  };
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

function made(place: HTMLElement, times: number[], values: (number | null)[], unit: string, onZoom: (since: number, until: number) => void): uPlot {
  const shown = (value: number | null) => (value === null ? "–" : unit === "B" ? bytes(value) : `${value.toFixed(1)} %`);
  const axis = { stroke: colourOf(place, "--quiet"), grid: { stroke: colourOf(place, "--line"), width: 1 }, ticks: { show: false }, space: 70 };
  const options: uPlot.Options = {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: true, live: true },
    cursor: { drag: { x: true, y: false, setScale: false } },
    hooks: {
      setSelect: [
        (chart) => {
          if (chart.select.width > 0) onZoom(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
        },
      ],
    },
    scales: { y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [axis, { ...axis, space: 40, size: 70, values: (_chart, ticks) => ticks.map((tick) => shown(tick)) }],
    series: [
      { value: (_chart, time) => (time === null ? "" : new Date(time * 1000).toLocaleString()) },
      { label: unit === "B" ? "kept out" : "too large", stroke: colourOf(place, "--accent"), width: 2, points: { show: values.filter((value) => value !== null).length < FEW }, spanGaps: true, value: (_chart, value) => shown(value) },
    ],
  };
  return new uPlot(options, [times, values], place);
}
