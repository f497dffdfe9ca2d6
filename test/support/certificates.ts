import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openssl } from './openssl.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** A certificate and its key: PEM text and the files that hold it. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly cert: string;
  readonly key: string;
}

export interface Certificates {
  /** The folder of the files. They belong to the test, which may replace them. */
  readonly dir: string;
  /** Signed `server`, `renewed`, `misnamed` and `client`. */
  readonly ca: Certificate;
  /** For localhost and 127.0.0.1. */
  readonly server: Certificate;
  /** Another one for the same names, for reloads. */
  readonly renewed: Certificate;
  /** For `other.example` only. */
  readonly misnamed: Certificate;
  /** For TLS clients. */
  readonly client: Certificate;
  /** A CA that signed `strangerServer` and `stranger` and none of the above. */
  readonly otherCa: Certificate;
  /** For localhost and 127.0.0.1, signed by `otherCa`. */
  readonly strangerServer: Certificate;
  /** A client of `otherCa`. */
  readonly stranger: Certificate;
}

type Name = Exclude<keyof Certificates, 'dir'>;
type Pem = Readonly<Record<Name, { readonly cert: string; readonly key: string }>>;

const local = 'subjectAltName=DNS:localhost,IP:127.0.0.1';
const leaves: readonly { name: Name; ca: Name; extension: string }[] = [
  { name: 'server', ca: 'ca', extension: local },
  { name: 'renewed', ca: 'ca', extension: local },
  { name: 'misnamed', ca: 'ca', extension: 'subjectAltName=DNS:other.example' },
  { name: 'client', ca: 'ca', extension: 'extendedKeyUsage=clientAuth' },
  { name: 'strangerServer', ca: 'otherCa', extension: local },
  { name: 'stranger', ca: 'otherCa', extension: 'extendedKeyUsage=clientAuth' },
];

let cached: Pem | null = null;

/** Certificates made with the `openssl` command, once per process, in files of the test's own. */
export function certificates(t: Scope): Certificates {
  const pem = (cached ??= make());
  const dir = tempDir(t);
  const place = (name: Name): Certificate => {
    const files = { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) };
    writeFileSync(files.certFile, pem[name].cert);
    writeFileSync(files.keyFile, pem[name].key, { mode: 0o600 });
    return { ...files, ...pem[name] };
  };
  return {
    dir,
    ca: place('ca'),
    server: place('server'),
    renewed: place('renewed'),
    misnamed: place('misnamed'),
    client: place('client'),
    otherCa: place('otherCa'),
    strangerServer: place('strangerServer'),
    stranger: place('stranger'),
  };
}

function make(): Pem {
  const dir = mkdtempSync(join(tmpdir(), 'sallyport-certificates-'));
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  try {
    for (const ca of ['ca', 'otherCa']) {
      openssl(
        dir,
        'req',
        '-x509',
        ...newKey,
        '-keyout',
        `${ca}.key`,
        '-out',
        `${ca}.crt`,
        '-days',
        '2',
        '-subj',
        `/CN=Test ${ca}`,
      );
    }
    for (const { name, ca, extension } of leaves) {
      openssl(dir, 'req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
      writeFileSync(join(dir, `${name}.ext`), `${extension}\n`);
      const signer = ['-CA', `${ca}.crt`, '-CAkey', `${ca}.key`, '-CAcreateserial'];
      openssl(
        dir,
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        ...signer,
        '-out',
        `${name}.crt`,
        '-days',
        '2',
        '-extfile',
        `${name}.ext`,
      );
    }
    const read = (name: Name): { cert: string; key: string } => ({
      cert: readFileSync(join(dir, `${name}.crt`), 'utf8'),
      key: readFileSync(join(dir, `${name}.key`), 'utf8'),
    });
    return {
      ca: read('ca'),
      server: read('server'),
      renewed: read('renewed'),
      misnamed: read('misnamed'),
      client: read('client'),
      otherCa: read('otherCa'),
      strangerServer: read('strangerServer'),
      stranger: read('stranger'),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
