import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate, Certificates } from './certificates.js';
import { openssl } from './openssl.js';

/** The `server` of these certificates, for the same names and of the same authority, but over since 2020. */
export function expiredServer({ dir, ca, server }: Certificates): Certificate {
  writeFileSync(join(dir, 'index.txt'), '');
  writeFileSync(
    join(dir, 'ca.cnf'),
    [
      '[ca]',
      'default_ca = it',
      '[it]',
      'database = index.txt',
      'new_certs_dir = .',
      'default_md = sha256',
      'policy = any',
      'rand_serial = yes',
      'x509_extensions = names',
      '[any]',
      'commonName = supplied',
      '[names]',
      'subjectAltName = DNS:localhost,IP:127.0.0.1',
      '',
    ].join('\n'),
  );
  openssl(dir, 'req', '-new', '-key', server.keyFile, '-out', 'expired.csr', '-subj', '/CN=expired');
  openssl(
    dir,
    'ca',
    '-batch',
    '-config',
    'ca.cnf',
    '-cert',
    ca.certFile,
    '-keyfile',
    ca.keyFile,
    '-in',
    'expired.csr',
    '-out',
    'expired.crt',
    '-notext',
    '-startdate',
    '20200101000000Z',
    '-enddate',
    '20200102000000Z',
  );
  const certFile = join(dir, 'expired.crt');
  return { certFile, keyFile: server.keyFile, cert: readFileSync(certFile, 'utf8'), key: server.key };
}
