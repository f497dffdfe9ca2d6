import { codeOf } from '../../lib/errors.js';
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ListenerTls } from '../../config/types.js';
import { readCaBundle } from '../../lib/pem.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files, FileWatch, Log } from '../../ports/system.js';
import type { StartFailure } from '../start-failure.js';
import type { TlsMaterial } from '../../proxy/inbound/listener.js';
import type { CertificateExpiry } from './certificate-expiry.js';
import { coalesce } from '../../lib/promises.js';
import { invalidFile, maxPemBytes, readAuthorities, readPem, warnOfExposure } from '../config/named-files.js';

/** PKCS #8 and the older form of OpenSSL. */
const lockedKey = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/** What the callers' listener shows and trusts. */
export interface ListenerCertificates {
  /** The certificate and those that lead up to its authority. */
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | null;
  /** The certificate itself, for its names and dates. */
  readonly leaf: X509Certificate;
  /** Path to digest of each file, for the watch on it. */
  readonly digests: ReadonlyMap<string, string>;
}

/**
 * Reads the listener's PEM files and holds them against each other, so that a pair that cannot serve is never put in
 * force.
 */
export async function readListenerCertificates(
  tls: ListenerTls,
  files: Files,
): Promise<Result<ListenerCertificates, StartFailure>> {
  const pair = await readCertificatePair(tls, files);
  if (!pair.ok) return pair;
  const { cert, key, leaf } = pair.value;
  const clientCa = tls.clientCaFile === null ? null : await readAuthorities(tls.clientCaFile, files);
  if (clientCa !== null && !clientCa.ok) return clientCa;
  const texts = [
    [tls.certFile, cert],
    [tls.keyFile, key],
  ] as const;
  const authorities =
    tls.clientCaFile === null || clientCa === null ? [] : [[tls.clientCaFile, clientCa.value] as const];
  return accept({
    cert,
    key,
    clientCa: clientCa?.value ?? null,
    leaf,
    digests: new Map([...texts, ...authorities].map(([path, text]) => [path, files.digest(text)])),
  });
}

/** A certificate that can be shown: the certificate itself, what leads up to its authority, and its private key. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
  readonly leaf: X509Certificate;
}

/** Reads the two files and holds them against each other. */
export async function readCertificatePair(
  { certFile, keyFile }: Pick<ListenerTls, 'certFile' | 'keyFile'>,
  files: Files,
): Promise<Result<CertificatePair, StartFailure>> {
  const cert = await readPem(certFile, files);
  if (!cert.ok) return cert;
  const key = await readPem(keyFile, files);
  if (!key.ok) return key;
  const chain = readCaBundle(cert.value);
  if (!chain.ok) return invalidFile(certFile, chain.error);
  const leaf = new X509Certificate(chain.value[0] ?? '');
  const privateKey = readPrivateKey(key.value);
  if (!privateKey.ok) return invalidFile(keyFile, privateKey.error);
  if (!leaf.checkPrivateKey(privateKey.value)) {
    return invalidFile(keyFile, `is not the key of the certificate in ${certFile}`);
  }
  const refusal = refusedByTls(cert.value, key.value);
  return refusal === null ? accept({ cert: cert.value, key: key.value, leaf }) : invalidFile(certFile, refusal);
}

function readPrivateKey(pem: string): Result<KeyObject, string> {
  if (lockedKey.test(pem)) return refuse('is locked with a passphrase, which nobody could type here');
  try {
    return accept(createPrivateKey(pem));
  } catch {
    // The parser's message may quote what it parsed.
    return refuse('holds no PEM private key');
  }
}

/** OpenSSL refuses more than its parsers do: keys that are too short, for one. */
function refusedByTls(cert: string, key: string): string | null {
  try {
    createSecureContext({ cert, key });
    return null;
  } catch (error) {
    const code = codeOf(error);
    return `cannot be used for TLS (${code})`;
  }
}

interface CertificateWatchDeps {
  readonly setTls: (material: TlsMaterial) => void;
  /** Is told what is in use from now on. */
  readonly expiry: Pick<CertificateExpiry, 'useListener'>;
  readonly files: Files;
  readonly log: Log;
  /** Milliseconds between two looks. */
  readonly watchIntervalMs: number | undefined;
}

/**
 * Takes the listener's certificates up when their files change. A pair that does not fit leaves the old one in place.
 */
export function watchCertificates(
  tls: ListenerTls,
  first: ListenerCertificates,
  deps: CertificateWatchDeps,
): Pick<FileWatch, 'close'> {
  const { files, log } = deps;
  let closed = false;
  const reload = coalesce(async () => {
    const read = await readListenerCertificates(tls, files);
    if (closed) return;
    if (read.ok) for (const [path, digest] of read.value.digests) watches.get(path)?.loaded(accept(digest));
    const problems = read.ok ? take(read.value) : read.error.messages;
    // Certificate and key are two files: between the writing of one and of the other, they do not fit.
    if (problems.length > 0) log.warn('the certificates were not reloaded; the old ones stay in use', { problems });
  });

  function take(certificates: ListenerCertificates): readonly string[] {
    try {
      deps.setTls(tlsMaterial(tls, certificates));
    } catch {
      return [`${tls.certFile}: cannot be used for TLS`];
    }
    log.info('the certificates were reloaded', { valid_to: certificates.leaf.validTo });
    warnOfExposure(tls.keyFile, files, log);
    deps.expiry.useListener(certificates);
    return [];
  }

  const watches = new Map(
    [...first.digests].map(([path, digest]) => [
      path,
      files.watch(path, () => void reload(), { digest, maxBytes: maxPemBytes, intervalMs: deps.watchIntervalMs }),
    ]),
  );
  return {
    close: () => {
      closed = true;
      for (const watch of watches.values()) watch.close();
    },
  };
}

/** The certificates as the listener takes them. */
export function tlsMaterial(tls: ListenerTls, { cert, key, clientCa }: ListenerCertificates): TlsMaterial {
  return { cert, key, clientCa, clientAuth: tls.clientAuth };
}
