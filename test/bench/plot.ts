import type { Measured } from './measure.js';
import type { MeasuredWorkload } from './measure-workloads.js';

interface Bar {
  readonly label: string;
  /** Microseconds of CPU for a request. */
  readonly cpuUs: number;
  readonly isOurs: boolean;
}

/** Bars that share a scale. */
interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const width = 900;
const barsFrom = 400;
const longestBar = 420;
const rowHeight = 22;
const panelHead = 44;

/**
 * CPU for a request as bars, by contender and by workload, with the figures of the tables beside them. It is read on
 * light and on dark pages.
 */
export function plotOf(
  measured: readonly Pick<Measured, 'name' | 'cpuUs'>[],
  workloads: readonly MeasuredWorkload[],
): string {
  const panels = [
    {
      title: 'One authorized GET, CPU of the proxy in µs',
      bars: measured.map(({ name, cpuUs }) => barOf(name, name, cpuUs)),
    },
    { title: 'By workload, CPU for a request in µs', bars: workloads.flatMap((workload) => barsOf(workload, false)) },
    {
      title: 'Bodies of 1 MiB, CPU for a request in µs',
      bars: workloads.flatMap((workload) => barsOf(workload, true)),
    },
  ].filter(({ bars }) => bars.length > 0);
  const parts: string[] = [];
  let top = 0;
  for (const panel of panels) {
    parts.push(...draw(panel, top));
    top += panelHead + panel.bars.length * rowHeight + 12;
  }
  const size = `viewBox="0 0 ${String(width)} ${String(top)}" width="${String(width)}" height="${String(top)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif" font-size="13" role="img" aria-labelledby="t d">
  <title id="t">CPU for a request</title>
  <desc id="d">Bars of the microseconds of CPU that a request takes, by contender and by workload; the figures are those of the tables in performance.md.</desc>
  <style>
    text { fill: #0f172a }
    .ours { fill: #1d4ed8 }
    .other { fill: #94a3b8 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e2e8f0 }
      .ours { fill: #60a5fa }
      .other { fill: #64748b }
    }
  </style>
${parts.join('\n')}
</svg>
`;
}

/** Bars of a workload, in the panel of large bodies or in the other. */
function barsOf({ title, entrants }: MeasuredWorkload, areLarge: boolean): readonly Bar[] {
  return entrants
    .filter(({ cpuUsPerMib }) => (cpuUsPerMib !== null) === areLarge)
    .map(({ name, cpuUs }) => barOf(`${title.replaceAll('`', '')}: ${name}`, name, cpuUs));
}

function barOf(label: string, name: string, cpuUs: number): Bar {
  return { label, cpuUs, isOurs: name.startsWith('Sallyport') };
}

function draw({ title, bars }: Panel, top: number): readonly string[] {
  const most = Math.max(...bars.map(({ cpuUs }) => cpuUs), 0.1);
  return [
    `  <text x="20" y="${String(top + 28)}" font-weight="600" font-size="15">${escaped(title)}</text>`,
    ...bars.flatMap(({ label, cpuUs, isOurs }, index) => {
      const y = top + panelHead + index * rowHeight;
      const length = Math.max(1, (cpuUs / most) * longestBar);
      return [
        `  <text x="${String(barsFrom - 10)}" y="${String(y + 13)}" text-anchor="end">${escaped(label)}</text>`,
        `  <rect x="${String(barsFrom)}" y="${String(y)}" width="${length.toFixed(1)}" height="17" rx="2" class="${isOurs ? 'ours' : 'other'}"/>`,
        `  <text x="${(barsFrom + length + 6).toFixed(1)}" y="${String(y + 13)}">${cpuUs.toFixed(1)}</text>`,
      ];
    }),
  ];
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
