/** How far an import is, as one line. */

interface Progress {
  readonly done: number;
  readonly total: number;
  readonly rejected: number;
}

export interface Sample {
  readonly atMs: number;
  readonly done: number;
}

/** What the rate is taken over: long enough to be steady, short enough to follow a Core that slows down. */
const rateOverMs = 20_000;

/** Adds a sample, and forgets those that say nothing of the present rate. */
export function sampled(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  return [...samples.filter(({ atMs }) => sample.atMs - atMs <= rateOverMs), sample];
}

/** Users a second; `null` before there is anything to measure. */
export function rateOf(samples: readonly Sample[]): number | null {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined || last.atMs - first.atMs < 200) return null;
  return (last.done - first.done) / ((last.atMs - first.atMs) / 1_000);
}

/** `1 234 of 5 000, 25 %, 310/s, 12 s left, 3 rejected`. */
export function progressText({ done, total, rejected }: Progress, samples: readonly Sample[]): string {
  const rate = rateOf(samples);
  const left = rate === null || rate <= 0 || done === total ? null : (total - done) / rate;
  return [
    `${String(done)} of ${String(total)}`,
    `${String(percentOf(done, total))} %`,
    ...(rate === null ? [] : [`${rate >= 10 ? rate.toFixed(0) : rate.toFixed(1)}/s`]),
    ...(left === null ? [] : [`${durationText(left)} left`]),
    ...(rejected === 0 ? [] : [`${String(rejected)} rejected`]),
  ].join(', ');
}

/** The same with a bar in front, no wider than the terminal. */
export function progressBar(progress: Progress, samples: readonly Sample[], columns: number): string {
  const text = progressText(progress, samples);
  const width = Math.min(30, columns - text.length - 4);
  if (width < 5) return text.slice(0, Math.max(0, columns - 1));
  const filled = Math.floor((width * percentOf(progress.done, progress.total)) / 100);
  return `[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${text}`;
}

function percentOf(done: number, total: number): number {
  return total === 0 ? 100 : Math.floor((100 * done) / total);
}

/** `45 s`, `12 min`, `3 h 20 min`. */
function durationText(seconds: number): string {
  if (seconds < 60) return `${String(Math.ceil(seconds))} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 60 ? `${String(minutes)} min` : `${String(Math.floor(minutes / 60))} h ${String(minutes % 60)} min`;
}
