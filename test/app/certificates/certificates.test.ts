import t from 'tap';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { localFiles } from '../../../src/adapters/files/files.js';
import { readAuthorities } from '../../../src/app/config/named-files.js';
import { readListenerCertificates } from '../../../src/app/certificates/certificates.js';
import { certificates, type Certificates } from '../../support/certificates.js';
import { openssl } from '../../support/openssl.js';
import { makeFifo } from '../../support/sh.js';

interface Row {
  readonly name: string;
  readonly files: (c: Certificates) => { cert?: string; key?: string; ca?: string | null };
  readonly kind: 'invalid' | 'unreadable';
  readonly message: RegExp;
}

function place(c: Certificates, name: string, text: string): string {
  const path = join(c.dir, name);
  writeFileSync(path, text);
  return path;
}

const rows: readonly Row[] = [
  {
    name: 'no certificate file',
    files: () => ({ cert: '/nonexistent.crt' }),
    kind: 'unreadable',
    message: /does not exist/,
  },
  { name: 'a directory', files: (c) => ({ key: c.dir }), kind: 'unreadable', message: /is a directory/ },
  { name: 'a FIFO', files: (c) => ({ ca: fifo(c) }), kind: 'unreadable', message: /FIFO/ },
  {
    name: 'no certificate in the file',
    files: (c) => ({ cert: place(c, 'x', 'hello') }),
    kind: 'invalid',
    message: /no PEM certificate/,
  },
  {
    name: 'a broken certificate',
    files: (c) => ({ cert: place(c, 'x', broken(c.server.cert)) }),
    kind: 'invalid',
    message: /broken/,
  },
  {
    name: 'a broken key',
    files: (c) => ({ key: place(c, 'x', broken(c.server.key)) }),
    kind: 'invalid',
    message: /no PEM private key/,
  },
  {
    name: 'a key of another certificate',
    files: (c) => ({ key: c.client.keyFile }),
    kind: 'invalid',
    message: /is not the key of the certificate/,
  },
  { name: 'a locked key', files: (c) => ({ key: locked(c) }), kind: 'invalid', message: /passphrase/ },
  {
    name: 'authorities without a certificate',
    files: (c) => ({ ca: place(c, 'x', '') }),
    kind: 'invalid',
    message: /no PEM certificate/,
  },
  { name: 'a key that TLS refuses for its length', files: short, kind: 'invalid', message: /cannot be used for TLS/ },
];

function broken(pem: string): string {
  const lines = pem.split('\n');
  return [lines[0], 'AAAA', ...lines.slice(2)].join('\n');
}

function fifo(c: Certificates): string {
  return makeFifo(join(c.dir, 'fifo'));
}

function locked(c: Certificates): string {
  const path = join(c.dir, 'locked.key');
  openssl(c.dir, 'pkcs8', '-topk8', '-in', c.server.keyFile, '-out', path, '-passout', 'pass:secret');
  return path;
}

function short(c: Certificates): { cert: string; key: string } {
  const files = { cert: join(c.dir, 'short.crt'), key: join(c.dir, 'short.key') };
  const args = [
    'req',
    '-x509',
    '-newkey',
    'rsa:512',
    '-nodes',
    '-keyout',
    files.key,
    '-out',
    files.cert,
    '-days',
    '2',
    '-subj',
    '/CN=short',
  ];
  openssl(c.dir, ...args);
  return files;
}

for (const { name, files, kind, message } of rows) {
  t.test(`${name} is ${kind}`, async (t) => {
    const c = certificates(t);
    const { cert = c.server.certFile, key = c.server.keyFile, ca = c.ca.certFile } = files(c);
    const read = await readListenerCertificates(
      { certFile: cert, keyFile: key, clientCaFile: ca, clientAuth: 'require' },
      localFiles,
    );
    if (read.ok) {
      t.fail('was accepted');
      return;
    }
    t.equal(read.error.kind, kind);
    t.match(read.error.messages.join('\n'), message);
    t.notMatch(read.error.messages.join('\n'), /PRIVATE KEY|secret/);
  });
}

t.test('a good pair is read, with the digest of each file', async (t) => {
  const c = certificates(t);
  const read = await readListenerCertificates(
    { certFile: c.server.certFile, keyFile: c.server.keyFile, clientCaFile: c.ca.certFile, clientAuth: 'require' },
    localFiles,
  );
  if (!read.ok) {
    t.fail(read.error.messages.join());
    return;
  }
  t.equal(read.value.cert, readFileSync(c.server.certFile, 'utf8'));
  t.equal(read.value.clientCa, c.ca.cert);
  t.same([...read.value.digests.keys()], [c.server.certFile, c.server.keyFile, c.ca.certFile]);
});

t.test('a certificate may come with those that lead up to its authority', async (t) => {
  const c = certificates(t);
  const chain = place(c, 'chain.crt', `${c.server.cert}${c.ca.cert}`);
  const read = await readListenerCertificates(
    { certFile: chain, keyFile: c.server.keyFile, clientCaFile: null, clientAuth: 'require' },
    localFiles,
  );
  t.ok(read.ok);
});

t.test('authorities are one good certificate at least', async (t) => {
  const c = certificates(t);
  t.ok((await readAuthorities(c.ca.certFile, localFiles)).ok);
  t.notOk((await readAuthorities(place(c, 'half', `${c.ca.cert}${broken(c.otherCa.cert)}`), localFiles)).ok);
  mkdirSync(join(c.dir, 'folder'));
  t.match(await readAuthorities(join(c.dir, 'folder'), localFiles), { ok: false, error: { kind: 'unreadable' } });
});
