import type { Ledger } from '../totals.js';
import { progressBar, progressText, sampled, type Sample } from '../progress.js';
import type { Io } from '../../cli/io.js';

/** What a running import tells those who watch it. */
interface ProgressDisplay {
  /** A line of its own; the same one not twice within a while. */
  readonly say: (line: string) => void;
  readonly close: () => void;
}

/** A bar that moves, and lines in a log that somebody may read. */
const barEveryMs = 200;
const lineEveryMs = 10_000;
const sayEveryMs = 10_000;

/** Shows progress on standard error until it is closed: a bar on a terminal, a line now and then elsewhere. */
export function showProgress(io: Io, total: number, ledger: Ledger): ProgressDisplay {
  const columns = io.columns?.('stderr') ?? null;
  let samples: readonly Sample[] = [];
  let saidAt = Number.NEGATIVE_INFINITY;
  const progress = (): { done: number; total: number; rejected: number } => {
    const { done, rejected } = ledger.totals();
    samples = sampled(samples, { atMs: performance.now(), done });
    return { done, total, rejected };
  };
  const bar = (): void => io.stderr(`\r\x1b[K${progressBar(progress(), samples, io.columns?.('stderr') ?? 80)}`);
  const line = (): void => io.stderr(`${progressText(progress(), samples)}\n`);
  progress();
  const timer = setInterval(columns === null ? line : bar, columns === null ? lineEveryMs : barEveryMs);
  timer.unref();
  return {
    say: (text) => {
      if (performance.now() - saidAt < sayEveryMs) return;
      saidAt = performance.now();
      io.stderr(columns === null ? `${text}\n` : `\r\x1b[K${text}\n`);
    },
    close: () => {
      clearInterval(timer);
      if (columns === null) line();
      else io.stderr(`\r\x1b[K${progressBar(progress(), samples, io.columns?.('stderr') ?? 80)}\n`);
    },
  };
}
