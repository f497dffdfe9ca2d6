interface MediaRange {
  readonly type: string;
  readonly version: string | null;
  /** From 0, not at all, to 1. */
  readonly quality: number;
}

const openMetrics = 'application/openmetrics-text';
const openMetricsVersion = '1.0.0';

/** What Prometheus' text format is taken under, the closest first. */
const textRanges = ['text/plain', 'text/*', '*/*'] as const;

/** `qvalue` of RFC 9110 §12.4.2. */
const qvalue = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * Whether `Accept` asks for OpenMetrics 1.0 by its name, and at least as much as for the text format of Prometheus (RFC
 * 9110 §12.5.1). Whoever takes anything gets text, as ever.
 */
export function prefersOpenMetrics(accept: string | undefined): boolean {
  const ranges = (accept ?? '').toLowerCase().split(',').map(readRange);
  const named = ranges.filter(
    ({ type, version }) => type === openMetrics && (version === null || version === openMetricsVersion),
  );
  const asked = Math.max(0, ...named.map(({ quality }) => quality));
  const text = textRanges.map((type) => qualityOf(ranges, type)).find((quality) => quality !== null) ?? 0;
  return asked > 0 && asked >= text;
}

/** The best that is said of it, whatever the version; `null` where nothing is. */
function qualityOf(ranges: readonly MediaRange[], type: string): number | null {
  const named = ranges.filter((range) => range.type === type);
  return named.length === 0 ? null : Math.max(...named.map(({ quality }) => quality));
}

function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim());
  const valueOf = (name: string): string | null =>
    parameters
      .find((parameter) => parameter.startsWith(`${name}=`))
      ?.slice(name.length + 1)
      .replace(/^"(.*)"$/, '$1') ?? null;
  const quality = valueOf('q') ?? '1';
  return { type, version: valueOf('version'), quality: qvalue.test(quality) ? Number(quality) : 0 };
}
