/** What the doctor says of tokens that are bound: docs/bound-tokens.md. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../../src/cli/program.js';
import { certificates } from '../../../support/certificates.js';
import { keySet } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { oidcPath, startMetadataServer } from '../../../support/metadata-server.js';
import type { ConfigTree } from '../../../support/proxy-process.js';
import { captureIo } from '../../captured-io.js';

const { dir, server: cert, ca } = certificates(t);
const server = await startMetadataServer(t);
const tls = { cert_file: cert.certFile, key_file: cert.keyFile };
const withAuthorities = { ...tls, client_ca_file: ca.certFile };
const nonces = join(dir, 'nonces');

/** Each finding in one line. */
async function examine(listen: ConfigTree, issuer: ConfigTree = {}, form?: string): Promise<string> {
  const config = {
    ...(form === undefined
      ? { listen: { host: '127.0.0.1', port: 0, ...listen }, upstream: { url: 'http://127.0.0.1:9' } }
      : { listen, decide: { port: 0, form } }),
    issuers: { idp: { profile: 'oauth', issuer: server.origin, audience: 'orders', ...issuer } },
    store: { memory: {} },
    routes: [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['read'] }],
  };
  writeFileSync(join(dir, 'sallyport.yaml'), JSON.stringify(config));
  const io = captureIo({ cwd: dir });
  await run(['doctor', '--config', 'sallyport.yaml'], io);
  t.equal(io.err(), '');
  return io.out();
}

function say(members: object, date?: string): void {
  server.at(oidcPath, (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', ...(date === undefined ? {} : { date }) });
    res.end(JSON.stringify({ issuer: server.origin, jwks_uri: `${server.origin}/keys`, ...members }));
  });
}

server.at('/keys', (_req, res) => res.end(keySet([rsaKey()])));
say({});

const origins = (...all: readonly string[]): ConfigTree => ({ dpop: { origins: all } });

t.test('origins are what callers reach', async (t) => {
  const rows: readonly (readonly [ConfigTree, RegExp])[] = [
    [
      { tls, ...origins('https://localhost:8443', 'https://127.0.0.1') },
      /^ok: dpop origins: https:\/\/localhost:8443 /m,
    ],
    [
      { tls, ...origins('http://localhost') },
      /^problem: dpop origins: http:\/\/localhost is http, and callers come by TLS/m,
    ],
    [{ tls, ...origins('https://orders.example') }, /^warning: dpop origins: .*certificate is for DNS:localhost/m],
    [origins('https://orders.example'), /^warning: dpop origins: .*nothing is known to end TLS/m],
    [origins('http://orders.example'), /^warning: dpop origins: .*in the clear/m],
    [origins('http://127.0.0.1:8080', 'http://localhost', 'http://[::1]:81'), /^ok: dpop origins/m],
    [{ tls_terminated_by: 'haproxy', ...origins('https://orders.example') }, /^ok: dpop origins/m],
  ];
  for (const [listen, says] of rows) t.match(await examine(listen), says);
  t.match(await examine(origins('http://127.0.0.1')), /^warning: dpop store: this process alone/m);
  t.notMatch(await examine({}), /dpop/);
});

t.test('where a proxy asks, it is the proxy that clients reach', async (t) => {
  const said = await examine(origins('https://orders.example', 'http://127.0.0.1'), {}, 'nginx');
  t.match(said, /^ok: dpop origins: https:\/\/orders.example http/m);
  t.match(said, /^warning: dpop store/m);
  t.match(await examine(origins('http://orders.example'), {}, 'nginx'), /^warning: dpop origins: .*in the clear/m);
  t.match(
    await examine({}, { binding: 'require' }, 'nginx'),
    /^problem: binding idp: binding is require, and nothing/m,
  );
});

t.test('keys of nonces', async (t) => {
  const listen = { dpop: { origins: ['http://127.0.0.1'], nonce_key_file: 'nonces' } };
  t.match(await examine(listen), /^problem: dpop nonces: .*nonces/m, 'there is none');
  writeFileSync(nonces, 'short\n', { mode: 0o600 });
  t.match(await examine(listen), /^problem: dpop nonces: .*line 1 is no base64 or hex.*openssl rand/m);
  const key = randomBytes(32).toString('base64');
  writeFileSync(nonces, `${key}\n${key}\n`);
  const sound = await examine(listen);
  t.match(sound, /^ok: dpop nonces: 2 keys/m);
  t.match(sound, /^ok: nonce keys: others may not read it/m);
  chmodSync(nonces, 0o644);
  const open = await examine(listen);
  t.match(open, /^warning: nonce keys: /m);
  t.notMatch(open, key);
});

t.test('what an issuer says that it binds tokens to', async (t) => {
  const dpop = { dpop_signing_alg_values_supported: ['ES256', 'ES512'] };
  const mtls = { tls_client_certificate_bound_access_tokens: true };
  const takesKeys = origins('http://127.0.0.1');
  const rows: readonly (readonly [object, ConfigTree, string, RegExp])[] = [
    [dpop, takesKeys, 'none', /^warning: binding idp: .*keys \(DPoP\), and binding is none: a stolen token counts/m],
    [mtls, takesKeys, 'none', /^warning: binding idp: .*certificates, and binding is none/m],
    [dpop, {}, 'accept', /^warning: binding idp: .*without listen\.dpop those bound to keys are refused/m],
    [mtls, takesKeys, 'accept', /^warning: binding idp: .*callers are asked for none/m],
    [mtls, { tls }, 'accept', /^warning: binding idp: .*callers are asked for none/m],
    [mtls, { tls: withAuthorities }, 'accept', /^ok: binding idp: binding is accept; .*certificates$/m],
    [mtls, { tls: { ...tls, client_auth: 'request' } }, 'require', /^ok: binding idp: binding is require/m],
    [{ ...dpop, ...mtls }, takesKeys, 'accept', /to keys \(DPoP\) and certificates; those bound to certificates/m],
    [dpop, takesKeys, 'require', /^ok: binding idp: binding is require; .*keys \(DPoP\)$/m],
    [
      { dpop_signing_alg_values_supported: ['ES512'] },
      takesKeys,
      'accept',
      /^problem: binding idp: .*ES512, of which none/m,
    ],
    [{}, takesKeys, 'accept', /^ok: binding idp: .*speaks of no bound tokens/m],
    [{}, {}, 'require', /^problem: binding idp: .*nothing can be proved here/m],
    [
      { dpop_signing_alg_values_supported: 'ES256' },
      takesKeys,
      'accept',
      /^ok: binding idp: .*speaks of no bound tokens/m,
    ],
  ];
  for (const [members, listen, binding, says] of rows) {
    say(members);
    t.match(await examine(listen, { binding }), says);
  }
});

t.test('a clock that is right for tokens and wrong for proofs', async (t) => {
  say({}, new Date(Date.now() + 20_000).toUTCString());
  const says = /^problem: clock idp: .*(?:19|20) s ahead of .*more than listen\.dpop allows/m;
  t.match(await examine(origins('http://127.0.0.1'), { clock_skew: '60s' }), says);
  t.notMatch(await examine({}, { clock_skew: '60s' }), says);
  say({}, new Date(Date.now() - 20_000).toUTCString());
  t.match(await examine(origins('http://127.0.0.1'), { clock_skew: '60s' }), /^ok: clock idp/m, 'proofs may be old');
});
