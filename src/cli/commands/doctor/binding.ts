/** What the doctor finds out about tokens that are bound to keys and certificates. */
import { isIP } from 'node:net';
import { localFiles } from '../../../adapters/files/files.js';
import { fetchText } from '../../../adapters/jwks/fetch-url.js';
import { readListenerCertificates } from '../../../app/certificates/certificates.js';
import { readNonceKeyFile } from '../../../app/keys/proofs.js';
import { asksForCertificates } from '../../../config/sections/listeners/listen.js';
import type { CompiledConfig, IssuerSettings, ListenSettings } from '../../../config/types.js';
import { proofAlgorithms } from '../../../decision/binding/dpop-proof.js';
import { isLoopback } from '../../../lib/ip-ranges.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../../lib/strict-json.js';
import { checkSecretMode } from './files.js';
import { ok, problem, warning, type Finding } from './finding.js';

/** Looks at what callers prove their tokens with, and at what each issuer says that it binds tokens to. */
export async function checkBinding(config: CompiledConfig): Promise<Finding[]> {
  const { issuers, listen, store, servesCallers, decide } = config;
  if (!servesCallers && decide.length === 0) return [];
  const found = await Promise.all([
    ...(listen.dpop === null
      ? []
      : [checkOrigins(listen, listen.dpop.origins, servesCallers), checkNonceKeys(listen.dpop)]),
    ...issuers.map(async (issuer) => checkIssuerBinding(issuer, listen)),
  ]);
  const isAlone = listen.dpop !== null && store?.kind === 'memory';
  return [
    ...found.flat(),
    ...(isAlone
      ? [
          warning(
            'dpop store',
            'this process alone remembers which proofs were used: another one behind the same address takes them again',
            'store.redis where there is more than one',
          ),
        ]
      : []),
  ];
}

/**
 * Clients sign what they call: a scheme or a name that nobody can reach here is one of which no proof holds.
 *
 * @param servesCallers whether they come here: else they come to a proxy that asks, and nothing is known of its TLS.
 */
async function checkOrigins(
  listen: ListenSettings,
  origins: ReadonlySet<string>,
  servesCallers: boolean,
): Promise<readonly Finding[]> {
  const subject = 'dpop origins';
  const read = listen.tls === null ? null : await readListenerCertificates(listen.tls, localFiles);
  const leaf = read?.ok === true ? read.value.leaf : null;
  const found = [...origins].flatMap((origin): readonly Finding[] => {
    const { protocol, hostname } = new URL(origin);
    const host = hostname.replace(/^\[|\]$/g, '');
    const isSecure = protocol === 'https:';
    if (!isSecure && (listen.tls !== null || listen.tlsTerminatedBy !== null)) {
      const what = `${origin} is http, and callers come by TLS: they sign https`;
      return [problem(subject, what, 'write the origin as clients write it, with https')];
    }
    if (isSecure && servesCallers && listen.tls === null && listen.tlsTerminatedBy === null) {
      const what = `${origin} is https, and nothing is known to end TLS: of callers that sign http every proof is refused`;
      return [warning(subject, what, 'listen.tls, or listen.tls_terminated_by; or the origin that clients write')];
    }
    if (!isSecure && !isLoopback(host)) {
      return [warning(subject, `${origin} is http: tokens travel in the clear`, 'listen.tls, and https in the origin')];
    }
    const isNamed = leaf === null || (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined;
    const names = leaf?.subjectAltName ?? '';
    const fix = 'an origin with a name of the certificate, or a certificate with that name';
    return isNamed ? [] : [warning(subject, `${origin}, and the certificate is for ${names}`, fix)];
  });
  return found.length > 0 ? found : [ok(subject, [...origins].join(' '))];
}

async function checkNonceKeys(dpop: NonNullable<ListenSettings['dpop']>): Promise<readonly Finding[]> {
  if (dpop.nonceKeyFile === null) return [];
  const read = await readNonceKeyFile(dpop, localFiles);
  if (read.ok) {
    const count = read.value?.keys.length ?? 0;
    const keys = ok(
      'dpop nonces',
      `${String(count)} ${count === 1 ? 'key' : 'keys'}: the first makes nonces, each is taken`,
    );
    return [keys, await checkSecretMode('nonce keys', dpop.nonceKeyFile)];
  }
  const fix = 'a line for each key: openssl rand -base64 32';
  return read.error.messages.map((message) => problem('dpop nonces', message, fix));
}

async function checkIssuerBinding(issuer: IssuerSettings, listen: ListenSettings): Promise<readonly Finding[]> {
  const { binding, name } = issuer.rules;
  const subject = `binding ${name}`;
  const takes = { keys: listen.dpop !== null, certificates: asksForCertificates(listen) };
  if (binding === 'require' && !takes.keys && !takes.certificates) {
    const what = 'binding is require, and nothing can be proved here: every token of this issuer is refused';
    return [problem(subject, what, provingFix)];
  }
  const metadata = await metadataOf(issuer);
  if (metadata === null) return binding === 'accept' ? [] : [ok(subject, `binding is ${binding}`)];
  const algorithms = listOf(metadata['dpop_signing_alg_values_supported']);
  const bindsCertificates = metadata['tls_client_certificate_bound_access_tokens'] === true;
  const binds = [...(algorithms.length > 0 ? ['keys (DPoP)'] : []), ...(bindsCertificates ? ['certificates'] : [])];
  if (binds.length === 0) return [ok(subject, `binding is ${binding}; its metadata speaks of no bound tokens`)];
  const says = `its metadata says that it binds tokens to ${binds.join(' and ')}`;
  if (binding === 'none') {
    return [warning(subject, `${says}, and binding is none: a stolen token counts`, `binding: accept; ${provingFix}`)];
  }
  const found: Finding[] = [];
  if (algorithms.length > 0 && !takes.keys) {
    found.push(
      warning(subject, `${says}; without listen.dpop those bound to keys are refused`, 'listen.dpop, with origins'),
    );
  }
  if (bindsCertificates && !takes.certificates) {
    const what = `${says}; those bound to certificates are refused, since callers are asked for none`;
    found.push(warning(subject, what, 'listen.tls.client_auth: request, or listen.client_cert_header behind a proxy'));
  }
  const ours = new Set(proofAlgorithms.split(' '));
  if (algorithms.length > 0 && takes.keys && !algorithms.some((algorithm) => ours.has(algorithm))) {
    const what = `it takes proofs with ${algorithms.join(' ')}, of which none is taken here`;
    found.push(problem(subject, what, `have it take one of ${proofAlgorithms}`));
  }
  return found.length > 0 ? found : [ok(subject, `binding is ${binding}; ${says}`)];
}

const provingFix =
  'listen.dpop for keys; for certificates listen.tls.client_auth, or listen.client_cert_header behind a proxy';

/** What an issuer with discovery says of itself (RFC 8414 §2); `null` where it says nothing that can be read. */
async function metadataOf({
  keys: { source, caFile, maxBytes, timeoutMs },
}: IssuerSettings): Promise<JsonObject | null> {
  if (source.kind !== 'discovery') return null;
  for (const url of [source.url, ...(source.otherUrl === null ? [] : [source.otherUrl])]) {
    const fetched = await fetchText(
      new URL(url),
      { caFile, tokenFile: null, files: localFiles },
      { maxBytes, timeoutMs, maxRedirects: 0 },
      AbortSignal.timeout(timeoutMs),
    );
    const read = fetched.ok ? parseStrictJson(fetched.value.bytes, { maxDepth: defaultMaxDepth }) : null;
    if (read?.ok === true && read.value['issuer'] === source.issuer) return read.value;
  }
  return null;
}

function listOf(value: JsonObject[string] | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
