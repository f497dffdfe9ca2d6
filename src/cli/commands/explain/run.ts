import { decideOnly } from '../../../policy-test/simulate/offline-config.js';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import type { CompiledConfig } from '../../../config/types.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { Reason } from '../../../decision/denial.js';
import type { JsonObject } from '../../../lib/strict-json.js';
import { knownTo, shownTo } from '../../../policy-test/simulate/certificates.js';
import {
  assumeToken,
  claimsOf,
  noCredential,
  type ShownCredential,
} from '../../../policy-test/simulate/test-credentials.js';
import { isOpaque } from '../../../decision/token/introspection.js';
import { createAssumedKeys, assumedSessions } from '../../../policy-test/simulate/test-keys.js';
import { explanationData, explanationLines } from '../../../policy-test/explain/format.js';
import { headOf, type PolicyRequest, rule } from '../../../policy-test/simulate/decide.js';
import { loadChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import { readToken } from '../../stdin.js';
import { readCertificateFile, readClaims } from './input.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';

export interface ExplainOptions {
  readonly config?: string;
  readonly method: string;
  readonly path: string;
  readonly header: readonly (readonly [string, string])[];
  readonly tokenStdin?: true;
  readonly claims?: string;
  readonly subject?: string;
  readonly permissions?: string;
  readonly tokenId?: string;
  readonly issuer?: string;
  readonly clientCertificate?: string;
  readonly egress?: true;
  readonly at?: number;
  readonly json?: true;
}

/** Prints each step of one decision. */
export async function explain(options: ExplainOptions & ConfigArguments, io: Io): Promise<void> {
  const loaded = await loadChosen(options, io);
  const outcome = loaded.ok ? await explainWith(loaded.value.config, options, io) : loaded;
  if (!outcome.ok) fail(outcome.error, io);
}

async function explainWith(
  config: CompiledConfig,
  options: ExplainOptions,
  io: Io,
): Promise<Result<null, StartFailure>> {
  // Not while the arguments are read: what is wrong with one is said with its value.
  if (options.header.some(([name]) => /^(proxy-)?authorization$/i.test(name))) {
    return refuse(
      startFailure(
        'unreadable',
        '--header: credentials are not taken from arguments; allowed: a token on standard input (--token-stdin)',
      ),
    );
  }
  const certificate = await readCertificateFile(options.clientCertificate, io);
  if (!certificate.ok) return certificate;
  const { method, path, header: headers } = options;
  const request: PolicyRequest = {
    method,
    path,
    headers,
    body: null,
    certificate: shownTo(config, certificate.value),
  };
  if (options.egress === true) return printEgress(config, request, options, io);
  const nowMs = options.at ?? Date.now();
  if (options.tokenStdin !== true) {
    const given = await givenClaims(config, options, io);
    if (!given.ok) return given;
    const keys = createAssumedKeys();
    const activeConfig = decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
    const credential =
      given.value === null ? noCredential : assumeToken(given.value, request, activeConfig, keys, nowMs);
    await print({ request, activeConfig, nowMs, credential }, options, io);
    return accept(null);
  }
  const token = await readToken(io);
  if (!token.ok) return token;
  // What fetches keys takes longer to load than all the rest.
  const { openKeys } = await import('../../../app/keys/offline-keys.js');
  const opened = await openKeys(config);
  if (!opened.ok) return opened;
  const keys = opened.value;
  try {
    const notes = [opaqueOrSigned(token.value)];
    // Whoever shows a proof says so by the scheme (RFC 9449 §7.1).
    const scheme = options.header.some(([name]) => name.toLowerCase() === 'dpop') ? 'DPoP' : 'Bearer';
    const credential: ShownCredential = { headers: ['Authorization', `${scheme} ${token.value}`], notes };
    const activeConfig = decideOnly(config, keys.of, keys.sessions, keys.introspectionOf);
    await print({ request, activeConfig, nowMs, credential }, options, io);
  } finally {
    await keys.close();
  }
  return accept(null);
}

async function printEgress(
  config: CompiledConfig,
  request: PolicyRequest,
  { json }: ExplainOptions,
  io: Io,
): Promise<Result<null, StartFailure>> {
  const { egressLines, explainEgress } = await import('./egress.js');
  const explained = explainEgress(config, request);
  if (!explained.ok || config.egress === null) return explained.ok ? accept(null) : explained;
  io.stdout(
    json === true
      ? `${JSON.stringify(explained.value)}\n`
      : egressLines(explained.value, config.egress, request)
          .map((line) => `${line}\n`)
          .join(''),
  );
  io.exit(explained.value.allowed ? 0 : 1);
  return accept(null);
}

function opaqueOrSigned(token: string): string {
  return isOpaque(token)
    ? 'an opaque token from standard input, which the issuer that may have issued it is asked about'
    : 'a token from standard input, verified with the keys that its issuer publishes';
}

/** The claims that were given, `null` where none were. */
async function givenClaims(
  config: CompiledConfig,
  options: ExplainOptions,
  io: Io,
): Promise<Result<JsonObject | null, StartFailure>> {
  const { subject, permissions, tokenId, issuer: name, claims: file } = options;
  const issuer = config.issuers.find(({ rules }) => rules.name === name)?.rules;
  if (name !== undefined && issuer === undefined) {
    const names = config.issuers.map(({ rules }) => rules.name).join(', ');
    return refuse(
      startFailure('unreadable', `--issuer: the config has no issuer ${JSON.stringify(name)}; allowed: ${names}`),
    );
  }
  const named: JsonObject = issuer === undefined ? {} : { iss: issuer.issuer, aud: issuer.audience };
  if (file !== undefined) {
    const read = await readClaims(file, io);
    return read.ok ? accept({ ...named, ...read.value }) : read;
  }
  if (subject === undefined) {
    const lost = [permissions, tokenId, name].some((value) => value !== undefined);
    return lost
      ? refuse(
          startFailure(
            'unreadable',
            '--permissions, --token-id and --issuer describe a token: they need --subject or --claims',
          ),
        )
      : accept(null);
  }
  const held = (permissions ?? '').split(/[ ,]+/).filter((permission) => permission !== '');
  const meant = issuer ?? (config.issuers.length === 1 ? config.issuers[0]?.rules : undefined);
  return accept({
    ...named,
    ...(meant === undefined ? { sub: subject, permissions: held } : claimsOf(meant, subject, held)),
    ...(tokenId === undefined ? {} : { jti: tokenId }),
  });
}

interface Question {
  readonly request: PolicyRequest;
  readonly activeConfig: ReturnType<typeof decideOnly>;
  readonly nowMs: number;
  readonly credential: ShownCredential;
}

/** Nobody could tell what the token is worth. */
const outOfReach: ReadonlySet<Reason> = new Set<Reason>([
  'keys_unavailable',
  'core_unavailable',
  'introspection_unavailable',
]);

async function print(
  { request, activeConfig, nowMs, credential }: Question,
  { json }: ExplainOptions,
  io: Io,
): Promise<void> {
  const head = headOf(request, credential.headers);
  const { certificate = null } = request;
  const ruling = await rule(head, 0, activeConfig, nowMs, { certificate, provedKey: credential.provedKey });
  const known = knownTo(ruling, certificate);
  const explained = { head, activeConfig, nowMs, ruling, credentialNotes: credential.notes, certificate: known };
  if (json === true) io.stdout(`${JSON.stringify(explanationData(explained))}\n`);
  else io.stdout(`${explanationLines(explained).join('\n')}\n`);
  io.exit(ruling.decision !== 'denied' ? 0 : ruling.reason !== null && outOfReach.has(ruling.reason) ? 3 : 1);
}
