/** The page: what it says at the top, its four views, and how it is told of news. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import type { Status } from '../admin/status.js';
import { AccessMatrix } from './access.js';
import { Claims } from './claims.js';
import { useLive, type Live } from './live.js';
import { Now } from './now.js';
import { Badge, Quiet, type Tone } from './parts.js';
import { Refusals } from './refusals.js';
import { Navigation, useView } from './views.js';
import { clock, secondsSince, span } from './words.js';

const views = [
  ['now', 'Now'],
  ['refusals', 'Refusals'],
  ['access', 'Access'],
  ['claims', 'Claims'],
] as const;

type View = (typeof views)[number][0];

export function App(): JSX.Element {
  const [isPaused, setPaused] = useState(false);
  const live = useLive(isPaused);
  const view = useView(views);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <h1>
          <Gate /> Sallyport
        </h1>
        <Summary live={live} />
        <button type="button" class="small" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Go on' : 'Pause'}
        </button>
      </header>
      <Navigation views={views} current={view} />
      <Announcer live={live} />
      <Notices live={live} />
      <main id="main" tabIndex={-1}>
        {live.status === null ? <Quiet>Reading…</Quiet> : <Shown view={view} live={live} />}
      </main>
    </>
  );
}

function Shown({ view, live }: { readonly view: View; readonly live: Live }): JSX.Element {
  switch (view) {
    case 'now':
      return <Now live={live} />;
    case 'refusals':
      return <Refusals live={live} />;
    case 'access':
      return <AccessMatrix access={live.access} />;
    case 'claims':
      return <Claims />;
  }
}

const readinessTones: Readonly<Record<Status['readiness']['status'], Tone>> = {
  ready: 'good',
  degraded: 'warn',
  unavailable: 'bad',
};

function Summary({ live: { status, problem, readAtMs } }: { readonly live: Live }): JSX.Element {
  if (status === null) return <p class="summary">{problem === null ? '' : <Badge tone="bad">{problem}</Badge>}</p>;
  return (
    <p class="summary">
      {problem === null ? (
        <Badge tone={readinessTones[status.readiness.status]}>{status.readiness.status}</Badge>
      ) : (
        <Badge tone="bad">no answer since {readAtMs === null ? '' : clock(readAtMs)}</Badge>
      )}
      <span>
        config <code title={status.config.sha256}>{status.config.sha256.slice(0, 8)}</code>
      </span>
      <span>{span(secondsSince(status.config.loaded_at, Date.now()))} in force</span>
    </p>
  );
}

/** What somebody should know, whatever view they look at. */
function Notices({ live: { status, problem } }: { readonly live: Live }): JSX.Element | null {
  if (status === null) return null;
  const { config, restart_needed: restart, readiness } = status;
  const failing = readiness.checks.filter((check) => check.status !== 'ok');
  const notices: readonly (readonly [Tone, string, readonly string[]])[] = [
    ...(problem === null
      ? []
      : [['bad', 'The proxy does not answer; what stands here is what it said last', [problem]] as const]),
    ...(config.last_reload_error === null
      ? []
      : [
          [
            'bad',
            `The config was not reloaded at ${clock(config.last_reload_error.at)}; the one before is in force`,
            config.last_reload_error.problems,
          ] as const,
        ]),
    ...(failing.length === 0
      ? []
      : [['warn', 'Not as it should be', failing.map((check) => `${check.name}: ${check.status}`)] as const]),
    ...(restart.length === 0 ? [] : [['warn', 'Counts from the next start on', restart] as const]),
    ...(config.warnings.length === 0 ? [] : [['warn', 'Warnings of the config', config.warnings] as const]),
  ];
  if (notices.length === 0) return null;
  return (
    <section class="notices" aria-label="Notices">
      {notices.map(([tone, title, lines]) => (
        <details key={title} class={tone} open={tone === 'bad'}>
          <summary>
            <Badge tone={tone}>{title}</Badge> <span class="quiet">{lines.length}</span>
          </summary>
          <ul>
            {lines.map((line, index) => (
              <li key={index}>{line}</li>
            ))}
          </ul>
        </details>
      ))}
    </section>
  );
}

/** Reads out what changes the whole picture, and not each figure. */
function Announcer({ live: { status, problem } }: { readonly live: Live }): JSX.Element {
  const text =
    problem !== null ? 'The proxy does not answer' : status === null ? '' : `The proxy is ${status.readiness.status}`;
  return (
    <p class="hidden" role="status">
      {text}
    </p>
  );
}

function Gate(): JSX.Element {
  return (
    <svg viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
      <path class="wall" d="M2 15V7a6 6 0 0 1 12 0v8z" />
      <path class="way" d="M6 15V9a2 2 0 0 1 4 0v6z" />
    </svg>
  );
}
