/** A chart over time, with a legend that tells the same in words. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { JSX } from 'preact';
import uPlot from 'uplot';

interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

interface ChartProps {
  readonly title: string;
  /** Seconds since the epoch, one for each value. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** What is said where there is no line. */
  readonly none: string;
}

/** Lines differ by how they are drawn too, for those who do not tell their colours apart. */
const dashes: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [10, 3, 2, 3], [], [6, 3], [2, 3]];
const height = 190;

export function Chart({ title, times, lines, format, none }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useScheme();
  const names = lines.map(({ name }) => name).join('\n');
  const hasMoments = times.length > 1;
  useEffect(() => {
    const target = place.current;
    if (target === null || !hasMoments || names === '') return undefined;
    const made = new uPlot(optionsOf(names.split('\n'), format, target), [[]], target);
    plot.current = made;
    const resized = new ResizeObserver(() => {
      // Measured is the place, not the chart: else it would never get narrower.
      made.setSize({ width: target.clientWidth, height });
    });
    resized.observe(target);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, hasMoments, scheme]);
  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData);
  });
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      {hasMoments && names !== '' ? <div class="plot" ref={place} aria-hidden="true" /> : <p class="none">{none}</p>}
      <ul class="legend">
        {lines.map(({ name, values }, index) => (
          <li key={name}>
            <Swatch index={index} />
            <span class="name">{name}</span>
            <span class="number">{current(values, format)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function current(values: readonly (number | null)[], format: (value: number) => string): string {
  const last = values.at(-1) ?? null;
  return last === null ? '–' : format(last);
}

function Swatch({ index }: { readonly index: number }): JSX.Element {
  return (
    <svg class={`swatch line-${index % 7}`} viewBox="0 0 22 4" width="22" height="4" aria-hidden="true">
      <line x1="0" y1="2" x2="22" y2="2" stroke-width="2.5" stroke-dasharray={(dashes[index % 7] ?? []).join(' ')} />
    </svg>
  );
}

function optionsOf(names: readonly string[], format: (value: number) => string, place: HTMLElement): uPlot.Options {
  const colour = (name: string): string => resolved(name, place);
  const axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--rule'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  };
  return {
    width: place.clientWidth,
    height,
    legend: { show: false },
    cursor: { show: false },
    padding: [12, 8, 0, 0],
    scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        size: 30,
        space: 80,
        values: (_plot, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString('en-GB')),
      },
      { ...axis, size: 62, values: (_plot, splits) => splits.map((value) => format(value)) },
    ],
    series: [
      {},
      ...names.map((name, index) => ({
        label: name,
        stroke: colour(`--line-${index % 7}`),
        width: 2,
        dash: [...(dashes[index % 7] ?? [])],
        points: { show: false },
        spanGaps: false,
      })),
    ],
  };
}

/** A colour of the page as a canvas takes it: of a custom property, scripts get the text and not what it comes to. */
function resolved(name: string, place: HTMLElement): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Changes with the colours of the page. */
function useScheme(): boolean {
  const query = window.matchMedia('(prefers-color-scheme: dark)');
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const changed = (): void => setDark(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return isDark;
}
