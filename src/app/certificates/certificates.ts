import { codeOf } from '../../lib/errors.js';
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { ListenerTls } from '../../config/types.js';
import { readCaBundle } from '../../lib/pem.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** A bundle of every public authority has some 250 KB. */
export const maxPemBytes = 1024 * 1024;

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
  const cert = await read(tls.certFile, files);
  if (!cert.ok) return cert;
  const key = await read(tls.keyFile, files);
  if (!key.ok) return key;
  const clientCa = tls.clientCaFile === null ? null : await readAuthorities(tls.clientCaFile, files);
  if (clientCa !== null && !clientCa.ok) return clientCa;
  const chain = readCaBundle(cert.value);
  if (!chain.ok) return invalid(tls.certFile, chain.error);
  const leaf = new X509Certificate(chain.value[0] ?? '');
  const privateKey = readPrivateKey(key.value);
  if (!privateKey.ok) return invalid(tls.keyFile, privateKey.error);
  if (!leaf.checkPrivateKey(privateKey.value)) {
    return invalid(tls.keyFile, `is not the key of the certificate in ${tls.certFile}`);
  }
  const refusal = refusedByTls(cert.value, key.value);
  if (refusal !== null) return invalid(tls.certFile, refusal);
  const texts = [
    [tls.certFile, cert.value],
    [tls.keyFile, key.value],
  ] as const;
  const authorities =
    tls.clientCaFile === null || clientCa === null ? [] : [[tls.clientCaFile, clientCa.value] as const];
  return accept({
    cert: cert.value,
    key: key.value,
    clientCa: clientCa?.value ?? null,
    leaf,
    digests: new Map([...texts, ...authorities].map(([path, text]) => [path, files.digest(text)])),
  });
}

/** Reads a PEM file of authorities: the text, which holds at least one certificate and no broken one. */
export async function readAuthorities(path: string, files: Files): Promise<Result<string, StartFailure>> {
  const text = await read(path, files);
  if (!text.ok) return text;
  const certificates = readCaBundle(text.value);
  return certificates.ok ? text : invalid(path, certificates.error);
}

async function read(path: string, files: Files): Promise<Result<string, StartFailure>> {
  const text = await files.read(path, { maxBytes: maxPemBytes });
  return text.ok ? text : refuse(startFailure('unreadable', `${path}: ${text.error}`));
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

function invalid(path: string, what: string): Result<never, StartFailure> {
  return refuse(startFailure('invalid', `${path}: ${what}`));
}
