import { timestamp } from '../../../lib/timestamp.js';
import { formatMode } from '../../../lib/secret-file-access.js';
import type { X509Certificate } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { fileExposure, localFiles } from '../../../adapters/files/files.js';
import { readListenerCertificates } from '../../../app/certificates/certificates.js';
import type { CompiledConfig, ListenerTls } from '../../../config/types.js';
import { certificateState, daysLeft, validityOf } from '../../../lib/certificate-validity.js';
import { ok, problem, warning, type Finding } from './finding.js';

/** Looks at the listener's certificate and at who else may read or write the files. */
export async function checkFiles(
  configFile: string | null,
  config: CompiledConfig,
  nowMs: number,
): Promise<readonly Finding[]> {
  const { tls, host } = config.listen;
  const secrets = [
    ...(tls === null ? [] : [tls.keyFile]),
    ...(config.assertion === null ? [] : [config.assertion.keyFile]),
  ];
  const own = configFile === null ? [] : [await checkConfigMode(configFile)];
  const modes = [...own, ...(await Promise.all(secrets.map(async (file) => checkSecretMode('private key', file))))];
  return [...(tls === null ? [] : await checkCertificate(tls, host, nowMs)), ...modes];
}

async function checkCertificate(tls: ListenerTls, host: string, nowMs: number): Promise<readonly Finding[]> {
  const read = await readListenerCertificates(tls, localFiles);
  if (!read.ok) {
    return read.error.messages.map((message) =>
      problem('certificate', message, 'put a certificate and its key, as PEM, into these files'),
    );
  }
  const { leaf } = read.value;
  return [dateFinding('certificate', leaf, nowMs), ...nameFindings(leaf, host)];
}

/** From when and until when a certificate counts. */
export function dateFinding(subject: string, leaf: X509Certificate, nowMs: number): Finding {
  const validity = validityOf(leaf);
  const from = wholeSeconds(validity.notBeforeMs);
  const until = wholeSeconds(validity.notAfterMs);
  const fix = 'renew it; the new files are taken up without a restart';
  switch (certificateState(validity, nowMs)) {
    case 'not_yet_valid':
      return problem(subject, `is valid from ${from} only`, 'check the clock, or wait');
    case 'expired':
      return problem(subject, `expired on ${until}`, fix);
    case 'expiring':
      return warning(subject, `expires on ${until}, in ${String(daysLeft(validity, nowMs))} days`, fix);
    case 'valid':
      return ok(subject, `valid until ${until}`);
  }
}

/** As everything else writes times, without milliseconds: certificates have theirs in words. */
function wholeSeconds(epochMs: number): string {
  return timestamp(epochMs).replace(/\.\d{3}Z$/, 'Z');
}

/** Only where the listener is bound to one address or name is it known what callers connect to. */
function nameFindings(leaf: X509Certificate, host: string): readonly Finding[] {
  const subject = 'certificate names';
  const names = leaf.subjectAltName ?? '';
  const fix = 'issue one with the names that callers use';
  if (names === '') {
    return [problem(subject, 'the certificate has no subjectAltName, so that no client accepts it', fix)];
  }
  const isWildcard = host === '0.0.0.0' || host === '::';
  const matches = isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host);
  if (isWildcard || matches !== undefined) return [ok(subject, names)];
  return [warning(subject, `the certificate is for ${names}, the listener on ${host}`, fix)];
}

/** Looks at who else may read a secret. */
export async function checkSecretMode(subject: string, path: string): Promise<Finding> {
  const mode = await modeOf(path);
  if (mode === null) return problem(subject, `${path} cannot be looked at`, 'let the user that runs Sallyport read it');
  const exposure = fileExposure(path);
  if (exposure === null) return ok(subject, 'others may not read it');
  return warning(
    subject,
    `${path} is a file that ${exposure}`,
    `chmod 600 ${path}; in Kubernetes, defaultMode: 0400 of the secret and an fsGroup`,
  );
}

async function checkConfigMode(path: string): Promise<Finding> {
  const mode = await modeOf(path);
  if (mode !== null && (mode & 0o002) !== 0) {
    return problem(
      'config file',
      `every user of this machine may change the policy (mode ${formatMode(mode)})`,
      `chmod o-w ${path}`,
    );
  }
  return ok('config file', 'others may not change it');
}

async function modeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mode & 0o777;
  } catch {
    return null;
  }
}
