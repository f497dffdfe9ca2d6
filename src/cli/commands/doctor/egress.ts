/** What the doctor finds out about the calling side. */
import { systemClock } from '../../../adapters/system/clock.js';
import { localFiles } from '../../../adapters/files/files.js';
import { readCertificatePair } from '../../../app/certificates/certificates.js';
import { createTokenSource } from '../../../app/token-sources.js';
import type { EgressSettings, TargetSettings, TokenSourceSettings } from '../../../config/types.js';
import type { Log } from '../../../ports/system.js';
import { ok, problem, unreachable, type Finding } from './finding.js';
import { openUpstream } from './upstream.js';

const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Connects to each target as the proxy would, without asking it anything, and has each token given once. */
export async function checkEgress(egress: EgressSettings | null): Promise<readonly Finding[]> {
  if (egress === null) return [];
  return Promise.all([...egress.targets.map(checkTarget), ...egress.tokens.map(checkToken)]);
}

async function checkTarget({ name, upstream, certificate }: TargetSettings): Promise<Finding> {
  const subject = `target ${name}`;
  const shown = certificate === null ? null : await readCertificatePair(certificate, localFiles);
  if (shown?.ok === false) {
    return problem(subject, shown.error.messages.join('; '), 'correct its cert_file and key_file');
  }
  const connected = await openUpstream(upstream, shown === null ? null : shown.value);
  if (!connected.ok) {
    return unreachable(
      subject,
      `not reached at ${upstream.url}: ${connected.error}`,
      'start it, or correct its url, ca_file, server_name, cert_file or key_file',
    );
  }
  connected.value.destroy();
  return ok(subject, `answers at ${upstream.url}`);
}

async function checkToken(settings: TokenSourceSettings): Promise<Finding> {
  const subject = `token ${settings.name}`;
  if (settings.kind === 'oauth' && settings.grant !== 'client_credentials') {
    return ok(subject, 'is exchanged for the caller’s own, of which none is here to try it with');
  }
  const source = createTokenSource(settings, { clock: systemClock, files: localFiles, log: quiet });
  try {
    const outcome = await source.get(null);
    if (outcome.kind === 'token') return ok(subject, 'is given');
    const found = outcome.problem === 'away' ? unreachable : problem;
    return found(subject, outcome.reason, 'correct its source in egress.tokens, or what it names');
  } finally {
    source.close();
  }
}
