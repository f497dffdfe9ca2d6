import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { run } from '../../../../src/cli/program.js';
import { keySet, type Behaviour } from '../../../support/jwks-server.js';
import { rsaKey } from '../../../support/keys.js';
import { oidcPath, startMetadataServer } from '../../../support/metadata-server.js';
import { tempDir } from '../../../support/temp-dir.js';
import { captureIo } from '../../captured-io.js';

/** What the doctor says of an issuer with discovery: level and text by subject. */
async function examined(t: Test, issuer: string): Promise<ReadonlyMap<string, string>> {
  const cwd = tempDir(t);
  const config = [
    'listen: { host: 127.0.0.1, port: 0 }',
    'upstream: { url: "http://127.0.0.1:9" }',
    'issuers:',
    '  idp:',
    '    profile: oauth',
    `    issuer: ${issuer}`,
    '    audience: orders',
    'routes:',
    '  - { name: list, methods: [GET], path: /orders, subjects: [checkout], permissions: [read] }',
  ];
  writeFileSync(join(cwd, 'sallyport.yaml'), config.join('\n'));
  const io = captureIo({ cwd });
  await run(['doctor', '--config', 'sallyport.yaml', '--json'], io);
  const { findings } = JSON.parse(io.out()) as {
    findings: { level: string; subject: string; what: string; fix: string | null }[];
  };
  return new Map(findings.map(({ subject, level, what, fix }) => [subject, `${level}: ${what} | ${fix ?? ''}`]));
}

t.test('the doctor says which step of discovery fails, and why', async (t) => {
  const server = await startMetadataServer(t);
  const { origin } = server;
  const good = { issuer: origin, jwks_uri: `${origin}/keys` };
  const redirect: Behaviour = (_req, res) => res.writeHead(302, { location: '/elsewhere' }).end();
  const rows: { name: string; answer: object | Behaviour | null; metadata: RegExp }[] = [
    { name: 'none there', answer: null, metadata: /no metadata from .*openid-configuration or .*status 404 \| check/ },
    { name: 'a redirect', answer: redirect, metadata: /redirect, which is not followed \|/ },
    { name: 'no JSON', answer: (_req, res) => res.end('<html>'), metadata: /is not JSON \| see what is served/ },
    {
      name: 'another issuer',
      answer: { ...good, issuer: `${origin}/` },
      metadata: /its issuer is "http:\/\/127\.0\.0\.1:\d+\/" \| write issuer exactly/,
    },
    {
      name: 'another origin',
      answer: { ...good, jwks_uri: 'https://keys.example.com/keys' },
      metadata:
        /at another origin: "https:\/\/keys\.example\.com"; allowed are .* \| put that origin into jwks_origins/,
    },
    {
      name: 'over http',
      answer: { ...good, jwks_uri: 'http://keys.example.com/keys' },
      metadata: /at another origin: "http:\/\/keys.*allow_http: true/,
    },
  ];
  for (const { name, answer, metadata } of rows) {
    server.at(oidcPath, answer);
    const findings = await examined(t, origin);
    t.match(findings.get('metadata idp'), metadata, name);
    t.equal(findings.get('keys idp'), undefined, `${name}: what follows was not reached`);
  }
  server.at(oidcPath, good);
  t.match((await examined(t, origin)).get('metadata idp'), /^ok: names its keys at http:.*\/keys \|/);
  t.match((await examined(t, origin)).get('keys idp'), /no keys from http:.*\/keys: .*status 404 \| check ca_file/);
  server.at('/keys', (_req, res) => res.end(keySet([rsaKey('one')])));
  t.match((await examined(t, origin)).get('keys idp'), /^ok: accepted: one/);
});
