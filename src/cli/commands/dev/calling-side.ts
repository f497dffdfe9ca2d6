/** The calling side of `dev --egress`: a second Sallyport, in front of a caller that has no token and no key. */
import { startApp } from '../../../app/start.js';
import { textSource } from '../../../app/config/config-source.js';
import type { StartFailure } from '../../../app/start-failure.js';
import { approvesSubject } from '../../../decision/route/approval.js';
import type { Route } from '../../../decision/route/policy.js';
import { safeMethods } from '../../../decision/http/request-head.js';
import { accept, type Result } from '../../../lib/result.js';
import type { Io } from '../../io.js';
import { shownConfig } from './config.js';
import { curl, curlWrite, type Example, type Samples } from './examples.js';
import { devLog } from './log.js';

interface CallingSideOptions {
  /** 0 asks the system for a free one. */
  readonly port: number;
  /** Origin of the answering side. */
  readonly proxyUrl: string;
  /** Of it. */
  readonly routes: readonly Route[];
  /** Where the token of the calls comes from, as it stands in `egress.tokens`. */
  readonly token: object;
}

/** The calling side while it runs. */
export interface CallingSide {
  /** Below it is what the answering side serves, for callers without a token. */
  readonly url: string;
  /** YAML. */
  readonly config: string;
  readonly stop: () => Promise<void>;
}

const prefix = '/service';

/** Starts it on loopback. */
export async function startCallingSide(
  options: CallingSideOptions,
  io: Pick<Io, 'env' | 'stderr'>,
): Promise<Result<CallingSide, StartFailure>> {
  const text = JSON.stringify(configOf(options));
  const app = await startApp({
    source: textSource(text, 'the calling side’s config of dev'),
    env: io.env,
    logTo: devLog(io.stderr),
  });
  if (!app.ok) return app;
  const { listeners, stop } = app.value;
  const { egress } = listeners;
  if (egress === null) throw new Error('the config of the calling side has no listener of its own');
  const { host, port } = egress;
  return accept({
    url: `http://${host}:${String(port)}${prefix}`,
    config: shownConfig(JSON.stringify(configOf({ ...options, port }))),
    stop,
  });
}

function configOf({ port, proxyUrl, routes, token }: CallingSideOptions): object {
  return {
    egress: {
      listen: { host: '127.0.0.1', port },
      tokens: { own: token },
      targets: [
        {
          name: 'service',
          prefix,
          url: proxyUrl,
          token: 'own',
          allow: [{ methods: ['*'], path: '/**' }],
          idempotency: keepsEveryKey(routes) ? 'generate' : 'pass',
        },
      ],
    },
    admin: { host: '127.0.0.1', port: 0 },
    shutdown: { delay: '0s', grace: '1s' },
  };
}

/** Whether a key that is made here keeps every write from running twice: elsewhere a repeated one might. */
function keepsEveryKey(routes: readonly Route[]): boolean {
  return routes
    .filter(({ methods }) => methods === null || [...methods].some((method) => !safeMethods.has(method)))
    .every(({ reservation }) => reservation !== null && reservation.key !== null);
}

/** Commands of a caller that knows nothing of tokens and keys, as far as the answering side lets this subject. */
export function callingExamples(url: string, { allowed, repeated }: Samples, subject: string): readonly Example[] {
  const approval = repeated?.approval ?? null;
  const write = repeated !== null && approval !== null && approvesSubject(approval, subject) ? repeated : null;
  return [
    ...(allowed === null ? [] : [{ command: curl(url, allowed, null), expect: 200 as const }]),
    ...(write === null ? [] : [{ command: curlWrite(url, write), expect: 200 as const }]),
  ];
}
