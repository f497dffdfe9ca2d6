import t from 'tap';
import { createHeaderRules } from '../../../src/decision/http/header-rules.js';
import type { Principal } from '../../../src/decision/token/principal.js';
import { readHeaders, type RequestHeaders } from '../../../src/decision/http/request-headers.js';
import { refusedOrigin } from '../../../src/decision/websocket/handshake.js';
import { routeOf } from '../route/route-samples.js';

const rules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'refuse' });
const service: Principal = {
  kind: 'service',
  issuerName: 'core',
  issuer: 'i',
  subject: 's',
  permissions: [],
  tokenId: null,
  keyId: 'k',
  expiresAtS: 1,
  issuedAtS: 1,
};
const session: Principal = { ...service, kind: 'session' };

function fieldsOf(origins: readonly string[], host: string, more: readonly string[]): RequestHeaders {
  const rawHeaders = [
    'Host',
    host,
    'Connection',
    'Upgrade',
    'Upgrade',
    'websocket',
    ...origins.flatMap((origin) => ['Origin', origin]),
    ...more,
  ];
  const read = readHeaders({ method: 'GET', target: '/', httpVersion: '1.1', rawHeaders }, rules);
  if (!read.ok) throw new Error(read.error.reason);
  return read.value;
}

const bearer = ['Authorization', 'Bearer x'];
const cases = [
  { name: 'a service on any page', who: service, origins: ['https://evil.example'], refused: false },
  { name: 'a service on none', who: service, origins: [], refused: false },
  { name: 'nobody on any page', who: null, origins: ['https://evil.example'], refused: false },
  { name: 'a session on a page of the host', who: session, origins: ['https://app.example'], refused: false },
  {
    name: 'its scheme does not count, for TLS may end in front',
    who: session,
    origins: ['http://app.example'],
    refused: false,
  },
  {
    name: 'the port of the scheme written',
    who: session,
    host: 'app.example:443',
    origins: ['https://app.example'],
    refused: false,
  },
  { name: 'in another case', who: session, host: 'APP.example', origins: ['https://app.example'], refused: false },
  {
    name: 'among other fields',
    who: session,
    origins: ['https://app.example'],
    more: ['Accept', '*/*', 'X-A', 'origin', 'X-B', 'https://evil.example'],
    refused: false,
  },
  { name: 'a session on a foreign page', who: session, origins: ['https://evil.example'], refused: true },
  { name: 'on a page of another port', who: session, origins: ['https://app.example:8443'], refused: true },
  { name: 'on a page of a subdomain', who: session, origins: ['https://x.app.example'], refused: true },
  { name: 'on a page whose name goes on', who: session, origins: ['https://app.example.evil.example'], refused: true },
  { name: 'on a page that hides its origin', who: session, origins: ['null'], refused: true },
  { name: 'on a page of another scheme', who: session, origins: ['file://'], refused: true },
  { name: 'what is no origin', who: session, origins: ['app.example'], refused: true },
  { name: 'two origins', who: session, origins: ['https://app.example', 'https://evil.example'], refused: true },
  { name: 'a session in a cookie without an origin', who: session, origins: [], refused: true },
  { name: 'a session in Authorization without an origin', who: session, origins: [], more: bearer, refused: false },
  {
    name: 'a session in Authorization on a foreign page',
    who: session,
    origins: ['https://evil.example'],
    more: bearer,
    refused: true,
  },
  { name: 'named', who: session, allowed: ['https://page.example'], origins: ['https://page.example'], refused: false },
  {
    name: 'named, in another case',
    who: session,
    allowed: ['https://page.example'],
    origins: ['https://Page.Example'],
    refused: false,
  },
  {
    name: 'named, for a service',
    who: service,
    allowed: ['https://page.example'],
    origins: ['https://evil.example'],
    refused: true,
  },
  {
    name: 'named, for nobody',
    who: null,
    allowed: ['https://page.example'],
    origins: ['https://evil.example'],
    refused: true,
  },
  { name: 'named, and no page', who: service, allowed: ['https://page.example'], origins: [], refused: false },
  {
    name: 'named, and not the own host',
    who: session,
    allowed: ['https://page.example'],
    origins: ['https://app.example'],
    refused: true,
  },
] as const;

t.test('RFC 6455 §10.2: which pages may open a WebSocket', (t) => {
  for (const { name, who, origins, refused, ...rest } of cases) {
    const { allowed, host, more } = { allowed: null, host: 'app.example', more: [], ...rest };
    const route = { ...routeOf('GET /a'), allowsWebSocket: true, origins: allowed === null ? null : new Set(allowed) };
    t.same(
      refusedOrigin(fieldsOf(origins, host, more), route, who),
      refused ? { reason: 'origin_refused' } : null,
      name,
    );
  }
  const read = readHeaders(
    { method: 'GET', target: '/', httpVersion: '1.1', rawHeaders: ['Host', 'a', 'Origin', 'https://evil.example'] },
    rules,
  );
  t.equal(read.ok && refusedOrigin(read.value, routeOf('GET /a'), session), null, 'other requests are left to CORS');
  t.end();
});
