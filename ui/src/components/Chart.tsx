// Lines over time, drawn by uPlot. The legend is ours: names with the value under the pointer, or
// the last one.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../theme";
import { useStore } from "../store";

export interface Series {
  label: string;
  values: (number | null)[];
  /** 1 to 5, colours of the theme; or "bad". */
  color: 1 | 2 | 3 | 4 | 5 | "bad";
}

interface ChartProps {
  title: string;
  /** Seconds since 1970, ascending. */
  times: number[];
  series: Series[];
  format?: (value: number) => string;
  height?: number;
  /** "bars" for totals of days. */
  style?: "lines" | "bars";
}

const plain = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 1 });

/** A colour of the style sheet, resolved for the theme in use: a canvas knows no variables. */
function color(of: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  of.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

const variable = (s: Series): string => (s.color === "bad" ? "bad" : `chart-${s.color}`);

function options(box: HTMLElement, props: ChartProps, onIndex: (i: number | null) => void): uPlot.Options {
  const { series, format = plain, height = 120, style = "lines" } = props;
  const axis = { stroke: color(box, "muted"), grid: { stroke: color(box, "line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const bars = style === "bars" ? uPlot.paths.bars?.({ size: [0.7, 40] }) : undefined;
  return {
    width: box.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 24 },
      { ...axis, size: 52, values: (_, at) => at.map((v) => format(v)), space: 32 },
    ],
    series: [
      {},
      ...series.map((s) => {
        const stroke = color(box, variable(s));
        return bars ? { stroke, fill: stroke, paths: bars, points: { show: false } } : { stroke, width: 1.5, points: { show: false } };
      }),
    ],
    hooks: { setCursor: [(u) => onIndex(u.cursor.idx ?? null)] },
  };
}

export function Chart(props: ChartProps) {
  const { title, times, series, format = plain, height = 120 } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const [index, setIndex] = useState<number | null>(null);
  const look = useStore(theme);
  const names = series.map((s) => s.label).join("\n");

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(element, props, setIndex), [times, ...series.map((s) => s.values)] as uPlot.AlignedData, element);
    };
    draw();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    return () => {
      dark.removeEventListener("change", draw);
      sizes.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [names, look, height]);

  useEffect(() => {
    plot.current?.setData([times, ...series.map((s) => s.values)] as uPlot.AlignedData);
  }, [times, series]);

  const at = index ?? times.length - 1;
  const say = (s: Series): string => {
    const value = s.values[at];
    return value === null || value === undefined ? "–" : format(value);
  };
  const time = index === null ? "" : new Date((times[index] ?? 0) * 1000).toLocaleTimeString();
  const summary = `${title}: ${series.map((s) => `${s.label} ${say(s)}`).join(", ")}`;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-legend">
          {time !== "" && <span class="muted">{time}</span>}
          {series.map((s) => (
            <span key={s.label}>
              <span class="swatch" style={{ background: `var(--${variable(s)})` }} />
              {s.label} <b>{say(s)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={box} class="chart-plot" role="img" aria-label={summary} style={{ height: `${height}px` }} />
    </figure>
  );
}
