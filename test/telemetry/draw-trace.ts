import { asTree, services, type TracedSpan } from './services.js';

const width = 900;
const barsFrom = 380;
const longestBar = 420;
const rowHeight = 24;
const top = 16;
const indent = 12;
const nsPerMs = 1e6;

/** What stands beside the bar of a span. */
export function labelOf({ kind, name }: TracedSpan): string {
  return kind === 'INTERNAL' ? name : `${kind} ${name}`;
}

/** Draws a trace: a row for each span, indented below its parent, and a bar from its begin to its end. */
export function drawTrace(spans: readonly TracedSpan[]): string {
  const rows = asTree(spans);
  const begin = Math.min(...rows.map(({ startNs }) => Number(startNs)));
  const end = Math.max(...rows.map(({ endNs }) => Number(endNs)));
  const scale = longestBar / (end - begin);
  const height = top + rows.length * rowHeight + 44;
  const parts = rows.flatMap((span, row) => {
    const y = top + row * rowHeight;
    const x = barsFrom + (Number(span.startNs) - begin) * scale;
    const length = Math.max(2, Number(span.endNs - span.startNs) * scale);
    const ms = (Number(span.endNs - span.startNs) / nsPerMs).toFixed(1);
    const place = services.indexOf(span.service as (typeof services)[number]);
    return [
      `  <text x="${String(20 + span.depth * indent)}" y="${String(y + 14)}">${labelOf(span)}</text>`,
      `  <rect x="${x.toFixed(1)}" y="${String(y + 2)}" width="${length.toFixed(1)}" height="15" rx="2" class="s${String(place)}"/>`,
      `  <text x="${(x + length + 6).toFixed(1)}" y="${String(y + 14)}" class="ms">${ms} ms</text>`,
    ];
  });
  const legend = services.flatMap((service, place) => [
    `  <rect x="${String(20 + place * 170)}" y="${String(height - 28)}" width="14" height="14" rx="2" class="s${String(place)}"/>`,
    `  <text x="${String(40 + place * 170)}" y="${String(height - 16)}">${service}</text>`,
  ]);
  const size = `viewBox="0 0 ${String(width)} ${String(height)}" width="${String(width)}" height="${String(height)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="system-ui, sans-serif" font-size="13" role="img" aria-labelledby="t d">
  <title id="t">One write, traced from its caller to the service</title>
  <desc id="d">A row for each span, below its parent: the caller's, two of the calling side, those of the proxy with reserve, the request to the service and settle, and the service's own. Drawn from what a collector got.</desc>
  <style>
    text { fill: #0f172a }
    .ms { fill: #475569 }
    .s0 { fill: #94a3b8 }
    .s1 { fill: #0d9488 }
    .s2 { fill: #1d4ed8 }
    .s3 { fill: #b45309 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e2e8f0 }
      .ms { fill: #94a3b8 }
      .s0 { fill: #64748b }
      .s1 { fill: #2dd4bf }
      .s2 { fill: #60a5fa }
      .s3 { fill: #fbbf24 }
    }
  </style>
${[...parts, ...legend].join('\n')}
</svg>
`;
}
