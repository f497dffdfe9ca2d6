import type { SoakSample } from './soak.js';

const [width, height] = [900, 320];
const area = { left: 60, right: 880, top: 50, bottom: 280 };

/** Memory and heap over the time of a soak, as lines over the same scale. It is read on light and on dark pages. */
export function soakPlotOf(samples: readonly Pick<SoakSample, 'atS' | 'memoryMib' | 'heapMib'>[]): string {
  const longest = Math.max(...samples.map(({ atS }) => atS), 1);
  const step = stepOf(Math.max(...samples.map(({ memoryMib }) => memoryMib), 1));
  const most = Math.ceil(Math.max(...samples.map(({ memoryMib }) => memoryMib), 1) / step) * step;
  const x = (atS: number): string => (area.left + (atS / longest) * (area.right - area.left)).toFixed(1);
  const y = (mib: number): string => (area.bottom - (mib / most) * (area.bottom - area.top)).toFixed(1);
  const line = (of: (sample: Pick<SoakSample, 'memoryMib' | 'heapMib'>) => number, name: string): string =>
    `  <polyline class="${name}" points="${samples.map((sample) => `${x(sample.atS)},${y(of(sample))}`).join(' ')}"/>`;
  const marks = Array.from({ length: Math.round(most / step) + 1 }, (_, index) => index * step);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${String(width)} ${String(height)}" width="${String(width)}" height="${String(height)}" ` +
    `font-family="system-ui, sans-serif" font-size="13" role="img" aria-labelledby="t d">
  <title id="t">Memory of a soak</title>
  <desc id="d">Resident memory and V8's heap in MiB over ${longest.toFixed(0)} seconds at four fifths of what the proxy can do.</desc>
  <style>
    text { fill: #0f172a }
    line { stroke: #cbd5e1 }
    polyline { fill: none; stroke-width: 2 }
    .memory { stroke: #1d4ed8 }
    .heap { stroke: #94a3b8 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e2e8f0 }
      line { stroke: #334155 }
      .memory { stroke: #60a5fa }
      .heap { stroke: #64748b }
    }
  </style>
  <text x="20" y="28" font-weight="600" font-size="15">Memory at 80 % of capacity, MiB: the process above, V8's heap below</text>
${marks.map((mib) => mark(mib, y(mib))).join('\n')}
${line(({ memoryMib }) => memoryMib, 'memory')}
${line(({ heapMib }) => heapMib, 'heap')}
  <text x="${String(area.left)}" y="${String(area.bottom + 24)}">0 s</text>
  <text x="${String(area.right)}" y="${String(area.bottom + 24)}" text-anchor="end">${longest.toFixed(0)} s</text>
</svg>
`
  );
}

/** Round steps, four to eight of them. */
function stepOf(most: number): number {
  return [1, 5, 10, 25, 50, 100, 250, 500].find((step) => most / step <= 8) ?? 1_000;
}

function mark(mib: number, y: string): string {
  const line = `  <line x1="${String(area.left)}" x2="${String(area.right)}" y1="${y}" y2="${y}"/>`;
  return `${line}<text x="${String(area.left - 8)}" y="${y}" text-anchor="end">${String(mib)}</text>`;
}
