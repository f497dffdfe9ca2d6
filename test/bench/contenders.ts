import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { placeLoad, placeMeasured } from './affinity.js';
import { apacheVersion, startApache } from './apache.js';
import { startServer, versionOf, type Child } from './child.js';
import { startHaproxy } from './haproxy.js';
import { refuseUnknown } from './names.js';
import { startSallyport } from './sallyport.js';

/** Something that answers `GET /orders` with a token, and whose CPU is measured. */
export interface Contender extends Child {
  readonly name: string;
  /** What it does for a request. */
  readonly work: string;
}

export interface Field {
  readonly contenders: readonly Contender[];
  readonly token: string;
}

export interface ContenderSettings {
  /** Names of contenders; all of them unless given. */
  readonly only?: readonly string[];
  /** A built checkout of an earlier commit, to be measured beside this one. */
  readonly before?: string;
  /** Told of each contender that does not start, and goes without. */
  readonly onRun?: (text: string) => void;
}

/** Starts all that can be had here, each before the same receiver. */
export async function startContenders(t: Scope, { only, before, onRun }: ContenderSettings): Promise<Field> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const { pid, port: receiver } = await startServer(t, 'receiver');
  placeLoad(pid);
  const jwks = (await startJwksServer(t, { keys: [key] })).url;
  const headers = { Authorization: `Bearer ${token}` };
  const sallyport = async (level: 'info' | 'warn', checkout?: string): Promise<Child> => {
    const places = { upstream: { url: `http://127.0.0.1:${String(receiver)}` }, issuers: { core: { jwks_url: jwks } } };
    return startSallyport(
      t,
      { ...places, log: { level } },
      { path: '/orders', headers },
      // Both have the config that both know.
      { ...(checkout === undefined ? {} : { checkout }), keepsConfig: before === undefined },
    );
  };
  const judged = 'verifies, authorizes, forwards';
  const known: readonly { name: string; work: string; start: () => Promise<Child> }[] = [
    { name: 'node:http', work: 'answers by itself', start: async () => startServer(t, 'bare') },
    {
      name: '@fastify/http-proxy',
      work: 'forwards',
      start: async () => startServer(t, 'http-proxy', `http://127.0.0.1:${String(receiver)}`),
    },
    { name: 'Sallyport', work: `${judged}, logs`, start: async () => sallyport('info') },
    ...(before === undefined
      ? []
      : [{ name: 'Sallyport, before', work: `${judged}, logs`, start: async () => sallyport('info', before) }]),
    { name: 'Sallyport, log.level: warn', work: judged, start: async () => sallyport('warn') },
    ...(versionOf('haproxy', '-v') === null
      ? []
      : [
          { name: 'HAProxy', work: 'forwards', start: async () => startHaproxy(t, receiver, null, token) },
          {
            name: 'HAProxy, jwt_verify',
            work: judged,
            start: async () => startHaproxy(t, receiver, key.publicKey, token),
          },
        ]),
    ...(apacheVersion() === null
      ? []
      : [
          {
            name: 'Apache, mod_auth_openidc',
            work: judged,
            start: async () => startApache(t, receiver, key.publicKey, key.keyId, token),
          },
        ]),
  ];
  if (only !== undefined) {
    refuseUnknown(
      'contender',
      only,
      known.map(({ name }) => name),
    );
  }
  const contenders: Contender[] = [];
  for (const { name, work, start } of known) {
    if (only?.includes(name) === false) continue;
    try {
      const child = await start();
      placeMeasured(child.pid);
      contenders.push({ name, work, ...child });
    } catch (error) {
      onRun?.(`${name} is left out: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { contenders, token };
}
