/** docs/http.md names every header that Sallyport writes: in answers, and in requests to the upstream. */
import t from 'tap';
import { denial, reasons } from '../../src/decision/denial.js';
import { createHeaderRules } from '../../src/decision/http/header-rules.js';
import { identityHeaders, upstreamHeaders } from '../../src/decision/http/forwarded-headers.js';
import { problemOf } from '../../src/decision/http/problem-details.js';
import { readHeaders } from '../../src/decision/http/request-headers.js';
import { clientHeaders } from '../../src/decision/http/response-headers.js';
import { withRenewedSession } from '../../src/decision/session/headers.js';
import { replayedHeaders } from '../../src/decision/idempotency/stored-response.js';
import { compiled } from '../proxy/harness.js';
import { codeSpans, tableBelow, tableOf } from './pages.js';

const page = 'docs/http.md';
const rules = createHeaderRules({ identityNames: [], underscoreFields: 'drop', http10: 'allow' });
const namesOf = (fields: readonly string[]): string[] => fields.filter((_, index) => index % 2 === 0);

t.test('docs/http.md names every header of a response that Sallyport writes, and no other', (t) => {
  const renewed = { accessToken: 'a', frontToken: 'f' };
  const cookie = { domain: null, sameSite: 'lax', secure: true } as const;
  const limited = { ...denial('rate_limited'), rateLimit: { policy: 'p', state: 's' } };
  const written = new Set([
    ...reasons.flatMap((reason) => namesOf(problemOf(denial(reason), 'r').headers)),
    ...namesOf(problemOf(limited, 'r').headers),
    ...namesOf(clientHeaders(200, [], rules, 'r')),
    ...namesOf(replayedHeaders({ status: 200, headers: [], body: Buffer.alloc(0) }, 'k', 'r')),
    ...namesOf(withRenewedSession([], { ...renewed, to: 'header' }, cookie, 0)),
    ...namesOf(withRenewedSession([], { ...renewed, to: 'cookie' }, cookie, 0)),
    // Written where the answer is: its length, and whether its connection goes on.
    'Content-Length',
    'Connection',
  ]);
  const named = tableOf(page, 'headers').flatMap(([names = '']) => codeSpans(names));
  t.same([...named].sort(), [...written].sort());
  t.end();
});

t.test("docs/http.md names every header that the upstream gets besides the caller's", (t) => {
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const rawHeaders = [
    'Host',
    'orders.example.com',
    'Authorization',
    'Bearer a.b.c',
    'traceparent',
    trace,
    'tracestate',
    'a=b',
  ];
  const read = readHeaders({ method: 'GET', target: '/', httpVersion: '1.1', rawHeaders }, rules);
  if (!read.ok) throw new Error(read.error.reason);
  const principal = {
    subject: 's',
    issuer: 'i',
    permissions: ['p'],
    tokenId: 't',
    kind: 'service',
  } as unknown as Parameters<typeof identityHeaders>[1];
  const identity = identityHeaders(compiled({}).identity, principal);
  t.equal(identity.length, 10);
  const sent = namesOf(
    upstreamHeaders({
      headers: { ...read.value, contentLength: 1 },
      httpVersion: '1.1',
      remoteAddress: '192.0.2.1',
      trusted: false,
      encrypted: true,
      host: null,
      requestId: 'r',
      traceparent: trace,
      forwardsAuthorization: false,
      takesTrailers: false,
      identity,
    }),
  );
  const named = tableBelow(page, '## What the upstream receives').flatMap(([names = '']) => codeSpans(names));
  const others = ['X-Auth-Assertion', 'Idempotency-Record', 'Idempotency-Fence', 'Connection', 'Transfer-Encoding'];
  t.same([...named].sort(), [...sent, ...others].sort(), 'these, and what is added when it goes out');
  t.end();
});
