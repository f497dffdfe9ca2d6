/** Keys that the calling side makes for the callers whose own tokens it exchanges. */
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { listen } from '../../support/listening.js';
import type { RawResponse } from '../../support/raw-client.js';
import { tempDir } from '../../support/temp-dir.js';
import { ok, startCalling, startTarget } from './calling.js';

t.test('a key is made for a caller whose token names it, and for no other', async (t) => {
  const target = await startTarget(t, ok);
  let issued = 0;
  const issuer = createServer((_, res) => {
    issued += 1;
    const token = { access_token: `had-${String(issued)}`, token_type: 'Bearer', expires_in: 60 };
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
  });
  const { port } = await listen(t, issuer);
  const secretFile = join(tempDir(t), 'secret');
  writeFileSync(secretFile, 'a secret of the client', { mode: 0o600 });
  const oauth = {
    token_url: `http://127.0.0.1:${String(port)}/token`,
    issuer: `http://127.0.0.1:${String(port)}`,
    client_id: 'me',
    auth: { secret_file: secretFile },
    grant: 'exchange',
  };
  const { call } = await startCalling(
    t,
    target.url,
    { token: 'own', key_from: { header: 'X-Order' } },
    { tokens: { own: { oauth } } },
  );
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jwt = (claims: object): string => `${part({ alg: 'none' })}.${part(claims)}.${part({})}`;
  const send = (own: string): Promise<RawResponse> =>
    call('/orders/1', { headers: { authorization: `Bearer ${own}`, 'x-order': 'o-1' } });
  t.equal((await send(jwt({ iss: 'i', sub: 's', n: 1 }))).status, 200);
  t.equal((await send(jwt({ iss: 'i', sub: 's', n: 2 }))).status, 200);
  t.equal((await send(jwt({ iss: 'i', sub: 't' }))).status, 200);
  const keys = target.seen.map(({ headers }) => headers['idempotency-key']);
  t.equal(keys[0], keys[1], 'the next token of the same caller');
  t.not(keys[0], keys[2]);
  for (const nameless of ['opaque', 'a.b.c.d.e', jwt({ iss: 'i' })]) {
    const refused = await send(nameless);
    t.equal(refused.status, 400, nameless);
    t.match(JSON.parse(refused.text), { type: 'urn:sallyport:idempotency-key-missing', detail: /iss and sub/ });
  }
  const own = { authorization: 'Bearer opaque', 'idempotency-key': '"own"' };
  t.equal((await call('/orders/1', { headers: own })).status, 200, 'its own key is passed on');
  t.equal((await call('/orders/1', { method: 'GET', headers: { authorization: 'Bearer opaque' } })).status, 200);
  t.equal(target.seen.length, 5);
});
