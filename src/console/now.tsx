/** How it stands: rates, latency, and whatever somebody should look at. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { Chart } from './chart.js';
import type { Live } from './live.js';
import { quantile, ratesBetween, series, type Grouping, type Sample } from './rates.js';
import { Cards } from './cards.js';
import { duration, rate, words } from './words.js';

/** Lines of one chart; the rest is one line. */
const mostLines = 6;

/** Looks that a figure is made of: ten seconds. */
const looks = 5;

const groupings: readonly (readonly [Grouping, string])[] = [
  ['outcome', 'Outcome'],
  ['route', 'Route'],
];

export function Now({ live }: { readonly live: Live }): JSX.Element {
  const [grouping, setGrouping] = useState<Grouping>('outcome');
  const { samples } = live;
  const times = samples.slice(1).map(({ at_ms }) => at_ms / 1000);
  const requests = series(samples, grouping, mostLines);
  const reasons = series(samples, 'reason', mostLines);
  const linesOf = ({ names, values }: ReturnType<typeof series>): { name: string; values: readonly number[] }[] =>
    names.map((name, index) => ({ name, values: values[index] ?? [] }));
  return (
    <>
      <Figures live={live} />
      <section class="charts" aria-label="Charts of the last five minutes">
        <div class="panel">
          <fieldset class="choice">
            <legend class="hidden">Requests by</legend>
            {groupings.map(([name, label]) => (
              <label key={name}>
                <input
                  type="radio"
                  name="grouping"
                  checked={grouping === name}
                  onChange={() => {
                    setGrouping(name);
                  }}
                />
                <span>{label}</span>
              </label>
            ))}
          </fieldset>
          <Chart
            title="Requests a second"
            times={times}
            lines={linesOf(requests)}
            format={rate}
            none="No request yet."
          />
        </div>
        <div class="panel">
          <Chart
            title="Refusals a second, by reason"
            times={times}
            lines={linesOf(reasons).map(({ name, values }) => ({ name: words(name), values }))}
            format={rate}
            none="Nothing was refused since the page was opened."
          />
        </div>
        <div class="panel">
          <Chart
            title="Latency, with the upstream"
            times={times}
            lines={[0.5, 0.95, 0.99].map((part) => ({
              name: `p${Math.round(part * 100)}`,
              values: samples
                .slice(1)
                .map((after, index) =>
                  quantile(samples[Math.max(0, index - looks + 2)] ?? after, after, 'duration', part),
                ),
            }))}
            format={duration}
            none="No request yet."
          />
        </div>
      </section>
      <Cards live={live} />
    </>
  );
}

function Figures({ live: { samples, status } }: { readonly live: Live }): JSX.Element {
  const after = samples.at(-1);
  const before = samples.at(-1 - looks) ?? samples[0];
  const figures = after === undefined || before === undefined ? null : figuresOf(before, after);
  const inFlight = status === null ? 0 : status.connections.http1.requests + status.connections.http2.requests;
  const rows: readonly (readonly [string, string, string])[] = [
    ['Requests', figures === null ? '–' : rate(figures.all), '/s'],
    ['Refused', figures === null ? '–' : rate(figures.denied), '/s'],
    ['Failed', figures === null ? '–' : rate(figures.failed), '/s'],
    ['Latency p99', figures === null ? '–' : duration(figures.p99), ''],
    ['Own share of it', figures === null ? '–' : duration(figures.own), 'p99'],
    ['In flight', String(inFlight), ''],
  ];
  return (
    <dl class="figures" aria-label="Figures of the last ten seconds">
      {rows.map(([name, value, unit]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <strong>{value}</strong> <span>{unit}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function figuresOf(
  before: Sample,
  after: Sample,
): {
  readonly all: number;
  readonly denied: number;
  readonly failed: number;
  readonly p99: number | null;
  readonly own: number | null;
} {
  const rates = ratesBetween(before, after, 'outcome');
  return {
    all: [...rates.values()].reduce((sum, value) => sum + value, 0),
    denied: rates.get('denied') ?? 0,
    failed: rates.get('failed') ?? 0,
    p99: quantile(before, after, 'duration', 0.99),
    own: quantile(before, after, 'overhead', 0.99),
  };
}
