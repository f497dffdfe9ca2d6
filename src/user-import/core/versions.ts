import { accept, refuse, type Result } from '../../lib/result.js';
import { versionsRequest, type Core, type CoreReply, type CoreTrouble, type SpokenVersions } from './requests.js';
import { firstVersionOfIsVerified } from '../losses.js';

/** The version that the calls are qualified for (docs/specification.md 9). */
const qualifiedVersion = '2.16';

/** Tries before a Core counts as out of reach: a single answer may be lost. */
const tries = 4;
const pauseMs = 250;

interface Asking {
  /** The one version for all calls; `null` leaves the choice. */
  readonly asked: string | null;
  /** As for the calls behind this one: no try is made once they have failed for longer. */
  readonly giveUpAfterMs: number;
  readonly monotonicMs: () => number;
  readonly wait: (ms: number) => Promise<void>;
}

/**
 * Asks the Core what it speaks, and chooses the versions of the calls: the one that was asked for, or else the
 * qualified one, and for third-party users the oldest one that carries `isVerified`. Refuses in words that can follow
 * the Core's address.
 */
export async function chooseVersions(
  core: Core,
  { asked, giveUpAfterMs, monotonicMs, wait }: Asking,
): Promise<Result<SpokenVersions, string>> {
  const begunMs = monotonicMs();
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await core.call(versionsRequest(asked ?? qualifiedVersion));
    const isOver = attempt >= tries || monotonicMs() - begunMs > giveUpAfterMs;
    if (!isOver && isPassing(outcome)) await wait(pauseMs * attempt);
    else return outcome.ok ? chosen(outcome.value, asked) : refuse(`is out of reach: ${outcome.error.reason}`);
  }
}

/** Whether a call of this version carries whether a third-party user's email is verified. */
export function carriesIsVerified(version: string): boolean {
  return compare(version, firstVersionOfIsVerified) >= 0;
}

function isPassing(outcome: Result<CoreReply, CoreTrouble>): boolean {
  return outcome.ok
    ? outcome.value.status === 429 || outcome.value.status >= 500
    : outcome.error.kind !== 'refused_address';
}

function chosen({ status, json, text }: CoreReply, asked: string | null): Result<SpokenVersions, string> {
  const versions = json?.['versions'];
  if (status === 401 || status === 403) {
    return refuse(`refuses us (status ${String(status)}): is the api-key in the curl config file right?`);
  }
  if (status !== 200 || !Array.isArray(versions)) {
    return refuse(`does not say which versions it speaks (status ${String(status)}${text === '' ? '' : `, ${text}`})`);
  }
  const spoken = versions.filter(
    (version): version is string => typeof version === 'string' && /^\d{1,3}\.\d{1,3}$/.test(version),
  );
  const cdiVersion = asked ?? qualifiedVersion;
  if (!spoken.includes(cdiVersion)) {
    return refuse(
      `does not speak version ${cdiVersion} of its driver interface; allowed: ${spoken.slice(0, 40).join(', ') || 'none that it names'}`,
    );
  }
  const [oldest] = spoken.filter(carriesIsVerified).sort(compare);
  return accept({ cdiVersion, thirdPartyVersion: asked ?? oldest ?? cdiVersion });
}

/** By major and minor number. */
function compare(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split('.').map(Number);
  const [majorB = 0, minorB = 0] = b.split('.').map(Number);
  return majorA - majorB || minorA - minorB;
}
