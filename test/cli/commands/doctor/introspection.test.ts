/** What `doctor` says of an issuer that is asked about opaque tokens: a real one, and ones that answer oddly. */
import { chmodSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { run } from '../../../../src/cli/program.js';
import { certificates } from '../../../support/certificates.js';
import { expiredServer } from '../../../support/expired-certificate.js';
import { sayJson, startIntrospection, type IntrospectionServer } from '../../../support/introspection-server.js';
import { keySet, startJwksServer } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { listen } from '../../../support/listening.js';
import { oidcPath, startMetadataServer } from '../../../support/metadata-server.js';
import { oauthClient } from '../../../support/oauth-client.js';
import { startOidcProvider } from '../../../support/oidc-provider.js';
import { startUpstreamServer } from '../../../support/upstream-server.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';

const { secret, secretFile, keyFile, certificate: client, registered } = oauthClient(t);
const otherSecretFile = join(tempDir(t), 'other-secret');
writeFileSync(otherSecretFile, 'hunter2', { mode: 0o600 });

const receiver = await startUpstreamServer(t);

interface Examined {
  readonly code: number | null;
  /** Level, what was found and how to mend it, by subject. */
  readonly findings: ReadonlyMap<string, string>;
}

async function examine(t: Test, issuer: object): Promise<Examined> {
  const cwd = tempDir(t);
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    upstream: { url: receiver.url },
    issuers: { idp: { profile: 'oauth', audience: 'orders', claims: { subject: 'client_id' }, ...issuer } },
    routes: [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] }],
  };
  writeFileSync(join(cwd, 'sallyport.yaml'), stringify(config));
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml', '--json'], io);
  t.notOk(/hunter2|a secret: of/.test(io.out() + io.err()), 'no secret is told');
  t.equal(io.err(), '');
  const { findings } = JSON.parse(io.out()) as {
    readonly findings: readonly { level: string; subject: string; what: string; fix: string | null }[];
  };
  return {
    code: io.code(),
    findings: new Map(findings.map(({ subject, level, what, fix }) => [subject, `${level}: ${what} | ${fix ?? ''}`])),
  };
}

t.test('a real provider: each way to show who asks is known, and what it does not know is named', async (t) => {
  const c = certificates(t);
  const idp = await startOidcProvider(
    t,
    (['basic', 'key', 'certificate'] as const).map((way) => ({ ...registered[way], client_id: way })),
  );
  const asking = async (introspection: object): Promise<Examined> =>
    examine(t, { issuer: idp.issuer, ca_file: idp.caFile, introspection });
  const certificate = { client_id: 'certificate', client_auth: 'tls_client_auth' };
  const shown = { cert_file: client.certFile, key_file: client.keyFile };
  const works = /^ok: the issuer knows this client, and says of a made-up token that it is not active/;
  const refused =
    /^problem: the issuer refuses this client \(status 40[01]\): opaque tokens are 503 \| compare client_id/;
  for (const [introspection, found, code] of [
    [{ client_id: 'basic', client_secret_file: secretFile }, works, 0],
    [{ client_id: 'key', client_auth: 'private_key_jwt', key_file: keyFile, key_id: 'k' }, works, 0],
    [{ ...certificate, ...shown }, works, 0],
    [{ client_id: 'basic', client_secret_file: otherSecretFile }, refused, 1],
    [{ client_id: 'nobody', client_secret_file: secretFile }, refused, 1],
    [{ client_id: 'key', client_auth: 'private_key_jwt', key_file: client.keyFile, key_id: 'k' }, refused, 1],
    [{ ...certificate, cert_file: c.stranger.certFile, key_file: c.stranger.keyFile }, refused, 1],
  ] as const) {
    const name = JSON.stringify(introspection);
    const examined = await asking(introspection);
    t.match(examined.findings.get('introspection idp'), found, name);
    t.equal(examined.code, code, name);
    t.match(examined.findings.get('introspection idp secret'), /^ok: others may not read it/, name);
    t.equal(examined.findings.has('introspection idp certificate'), 'cert_file' in introspection);
  }
  const { findings } = await asking({ ...certificate, ...shown });
  t.match(findings.get('introspection idp certificate'), /^warning: expires on 20\d\d-.*, in 1 days \| renew it/);
  const expired = expiredServer(c);
  const over = await asking({ ...certificate, cert_file: expired.certFile, key_file: expired.keyFile });
  t.match(over.findings.get('introspection idp certificate'), /^problem: expired on 2020-01-02T00:00:00Z \| renew it/);
  t.equal(over.code, 1);
});

/** An issuer whose keys are fine, and which answers questions as this makes it. */
async function odd(t: Test, behave: Parameters<IntrospectionServer['behave']>[0]): Promise<Examined> {
  const server = await startIntrospection(t);
  const jwks = await startJwksServer(t);
  server.behave(behave);
  return examine(t, {
    issuer: 'https://idp.example.com',
    jwks_url: jwks.url,
    introspection: { url: server.url, client_id: 'sallyport', client_secret_file: secretFile, timeout: '500ms' },
  });
}

t.test('an issuer that answers something else was reached: what it said is named', async (t) => {
  const look =
    /: opaque tokens are 503 \| see what answers there, and whether introspection\.url and introspection\.answer/;
  for (const [name, behave, found] of [
    [
      'a redirect',
      (_q, res) => res.writeHead(302, { location: '/login' }).end(),
      /redirect \(status 302\), which is not/,
    ],
    ['a page', (_q, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), /is text\/html, and no/],
    ['a text for a truth value', (_q, res) => sayJson(res, { active: 'true' }), /does not say in `active` whether/],
    ['a list', (_q, res) => sayJson(res, []), /is no JSON object/],
    ['a JWT', (_q, res) => sayJson(res, 'a.b.c', 'application/token-introspection+jwt'), /introspection\+jwt, and no /],
    ['not there', (_q, res) => res.writeHead(404).end(), /the response has status 404/],
    ['broken', (_q, res) => res.writeHead(500).end(), /the response has status 500/],
    ['too much', (_q, res) => sayJson(res, { active: false, more: 'x'.repeat(70_000) }), /larger than 65536 bytes/],
  ] as const satisfies readonly (readonly [string, Parameters<IntrospectionServer['behave']>[0], RegExp])[]) {
    const { findings, code } = await odd(t, behave);
    t.match(findings.get('introspection idp'), /^problem: /, name);
    t.match(findings.get('introspection idp'), found, name);
    t.match(findings.get('introspection idp'), look, name);
    t.equal(code, 1, name);
  }
  const all = await odd(t, (_q, res) => sayJson(res, { active: true }));
  t.match(
    all.findings.get('introspection idp'),
    /^problem: the issuer says of a made-up token that it is active: what/,
  );
  t.equal(all.code, 1);
});

t.test('an issuer that is away is out of reach', async (t) => {
  const jwks = await startJwksServer(t);
  const gone = await startIntrospection(t);
  await gone.close();
  const silent = `http://127.0.0.1:${String((await listen(t, createServer())).port)}/`;
  for (const [url, found] of [
    [gone.url, /^problem: the connection was refused.* \| check introspection\.url, ca_file and that this machine/],
    [silent, /^problem: no complete response within 500 ms \| check introspection\.url/],
  ] as const) {
    const { findings, code } = await examine(t, {
      issuer: 'https://idp.example.com',
      jwks_url: jwks.url,
      introspection: { url, client_id: 'sallyport', client_secret_file: secretFile, timeout: '500ms' },
    });
    t.match(findings.get('introspection idp'), found);
    t.equal(code, 3);
  }
});

t.test('metadata that does not say where the issuer is asked', async (t) => {
  const server = await startMetadataServer(t);
  const { origin } = server;
  server.at('/keys', (_req, res) => res.end(keySet([rsaKey('one')])));
  const issuer = { issuer: origin, introspection: { client_id: 'sallyport', client_secret_file: secretFile } };
  const places = [undefined, 'https://elsewhere.example.com/introspect', 'http://elsewhere.example.com/introspect'];
  for (const introspection_endpoint of places) {
    server.at(oidcPath, { issuer: origin, jwks_uri: `${origin}/keys`, introspection_endpoint });
    const { findings, code } = await examine(t, issuer);
    t.match(
      findings.get('introspection idp'),
      /^problem: the issuer’s metadata has no introspection_endpoint, or one at another origin .* \| introspection\.url; or/,
    );
    t.equal(code, 1);
  }
  server.at(oidcPath, (_req, res) => res.socket?.destroy());
  const { findings, code } = await examine(t, issuer);
  t.match(findings.get('metadata idp'), /^problem: no metadata from /);
  t.match(
    findings.get('introspection idp'),
    /^problem: the issuer’s metadata could not be had, .* \| see metadata above/,
  );
  t.equal(code, 3);
});

t.test('files that cannot be used, or that others may read', async (t) => {
  const server = await startIntrospection(t);
  const jwks = await startJwksServer(t);
  const own = join(tempDir(t), 'secret');
  const asking = async (): Promise<Examined> =>
    examine(t, {
      issuer: 'https://idp.example.com',
      jwks_url: jwks.url,
      introspection: { url: server.url, client_id: 'sallyport', client_secret_file: own },
    });
  t.match(
    (await asking()).findings.get('introspection idp'),
    /^problem: .*\/secret: does not exist \| put into that file/,
  );
  writeFileSync(own, '\n');
  t.match(
    (await asking()).findings.get('introspection idp'),
    /^problem: .*\/secret: holds no secret of 1 to 4096 bytes/,
  );
  t.equal((await asking()).code, 1);
  t.equal(server.questions.length, 0, 'nobody is asked without it');
  writeFileSync(own, secret);
  chmodSync(own, 0o644);
  t.match(
    (await asking()).findings.get('introspection idp secret'),
    /^warning: .*\/secret is a file that .* \| chmod 600/,
  );
});
