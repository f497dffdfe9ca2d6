import { writeFileSync } from 'node:fs';
import { createServer, type ServerOptions } from 'node:https';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import type { KeySourceSettings } from '../../../src/config/types.js';
import { certificates } from '../../support/certificates.js';
import { keySet } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { listen } from '../../support/listening.js';
import { startMetadataServer, oidcPath } from '../../support/metadata-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { createKeySourceHarness } from './key-source-harness.js';

/** An API server over https that answers nobody without the token; and what it was asked with. */
async function startApiServer(
  t: Test,
  { cert, key }: ServerOptions,
  expected: () => string,
): Promise<{ origin: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer({ cert, key }, (req, res) => {
    seen.push(`${req.url ?? ''} ${req.headers.authorization ?? 'none'}`);
    if (req.headers.authorization !== `Bearer ${expected()}`) res.writeHead(401).end();
    else if (req.url === oidcPath) {
      res.end(JSON.stringify({ issuer: 'https://kubernetes.default.svc', jwks_uri: `${origin}/openid/v1/jwks` }));
    } else res.end(keySet([rsaKey('d-1')]));
  });
  const { port } = await listen(t, server);
  const origin = `https://127.0.0.1:${String(port)}`;
  return { origin, seen };
}

function settingsFor(origin: string): KeySourceSettings['source'] {
  return {
    kind: 'discovery',
    url: `${origin}${oidcPath}`,
    otherUrl: null,
    issuer: 'https://kubernetes.default.svc',
    keyOrigins: new Set([origin]),
    tokenOrigins: new Set([origin]),
  };
}

t.test('the discovery of a cluster takes authorities and token from files, and reads both anew', async (t) => {
  const made = certificates(t);
  const folder = tempDir(t);
  const tokenFile = join(folder, 'token');
  let token = 'first.token';
  writeFileSync(tokenFile, `${token}\n`);
  const { origin, seen } = await startApiServer(t, made.server, () => token);
  const { source, time, refreshes, lookUp } = createKeySourceHarness(t, settingsFor(origin), {
    settings: { caFile: made.ca.certFile, tokenFile },
  });
  await source.start();
  t.equal(await lookUp('d-1'), 'found');
  t.same(seen, [`${oidcPath} Bearer first.token`, '/openid/v1/jwks Bearer first.token']);

  token = 'rotated.token';
  writeFileSync(tokenFile, token);
  time.advance(480_000);
  await until('the refresh', () => refreshes.length === 4);
  t.same(refreshes.slice(2), ['core metadata ok', 'core ok'], 'the rotated token was picked up');

  const rows: [string, RegExp][] = [
    ['not a token\r\nx: y', /holds no bearer token/],
    ['', /holds no bearer token/],
    ['x'.repeat(9_000), /larger|too large|more than/],
  ];
  for (const [text, error] of rows) {
    writeFileSync(tokenFile, text);
    const broken = createKeySourceHarness(t, settingsFor(origin), {
      settings: { caFile: made.ca.certFile, tokenFile },
    });
    const before = seen.length;
    await broken.source.start();
    t.match(broken.source.state().lastError, error);
    t.equal(seen.length, before, 'nothing was sent');
    if (text !== '') t.notOk(JSON.stringify(broken.lines).includes(text.slice(0, 11)), 'the file is not quoted');
  }
});

t.test('a token never goes out over http', async (t) => {
  const server = await startMetadataServer(t);
  const seen: (string | undefined)[] = [];
  server.at('/keys', (req, res) => {
    seen.push(req.headers.authorization);
    res.end(keySet([rsaKey('d-1')]));
  });
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'secret');
  const { source, lookUp } = createKeySourceHarness(
    t,
    { kind: 'url', url: `${server.origin}/keys` },
    { settings: { tokenFile, caFile: null } },
  );
  await source.start();
  t.equal(await lookUp('d-1'), 'found');
  t.same(seen, [undefined]);
});

t.test('a token file that is missing is told, and nothing is asked', async (t) => {
  const missing = join(tempDir(t), 'none');
  const { source } = createKeySourceHarness(t, settingsFor('https://127.0.0.1:1'), {
    settings: { tokenFile: missing },
    files: localFiles,
  });
  await source.start();
  t.equal(source.state().lastError, `no metadata: the token file ${missing} does not exist`);
});

t.test('the token goes to the origins that have it coming, and to no other that may have keys', async (t) => {
  const made = certificates(t);
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, 'secret');
  const seen: string[] = [];
  const places: Record<'cluster' | 'issuer', string> = { cluster: '', issuer: '' };
  for (const name of ['cluster', 'issuer'] as const) {
    const { port } = await listen(
      t,
      createServer({ cert: made.server.cert, key: made.server.key }, (req, res) => {
        seen.push(`${name} ${req.headers.authorization ?? 'none'}`);
        const keys = keySet([rsaKey('d-1')]);
        res.end(
          name === 'issuer' ? keys : JSON.stringify({ issuer: places.issuer, jwks_uri: `${places.issuer}/keys` }),
        );
      }),
    );
    places[name] = `https://127.0.0.1:${String(port)}`;
  }
  const rows = [
    { tokenOrigins: [places.cluster], expected: ['cluster Bearer secret', 'issuer none'] },
    { tokenOrigins: [places.cluster, places.issuer], expected: ['cluster Bearer secret', 'issuer Bearer secret'] },
    { tokenOrigins: [places.issuer], expected: ['cluster none', 'issuer Bearer secret'] },
    { tokenOrigins: [], expected: ['cluster none', 'issuer none'] },
  ];
  for (const { tokenOrigins, expected } of rows) {
    seen.length = 0;
    const place: KeySourceSettings['source'] = {
      kind: 'discovery',
      url: `${places.cluster}${oidcPath}`,
      otherUrl: null,
      issuer: places.issuer,
      keyOrigins: new Set(Object.values(places)),
      tokenOrigins: new Set(tokenOrigins),
    };
    const { source, lookUp } = createKeySourceHarness(t, place, { settings: { caFile: made.ca.certFile, tokenFile } });
    await source.start();
    t.equal(await lookUp('d-1'), 'found');
    t.same(seen, expected);
  }
});
