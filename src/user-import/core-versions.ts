import { accept, refuse, type Result } from '../decision/result.js';
import { versionsRequest, type Core, type CoreReply, type CoreSpeech, type CoreTrouble } from './core-calls.js';

/** Tries before a Core counts as out of reach: a single answer may be lost. */
const tries = 4;
const pauseMs = 250;

/** Asks the Core whether it speaks the version. Refuses in words that can follow its address. */
export async function checkVersion(core: Core, speech: CoreSpeech, wait: (ms: number) => Promise<void>): Promise<Result<null, string>> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await core.call(versionsRequest(speech));
    if (attempt < tries && isPassing(answer)) await wait(pauseMs * attempt);
    else return answer.ok ? judged(answer.value, speech) : refuse(`is out of reach: ${answer.error.reason}`);
  }
}

function isPassing(answer: Result<CoreReply, CoreTrouble>): boolean {
  return answer.ok ? answer.value.status === 429 || answer.value.status >= 500 : answer.error.kind !== 'refused_address';
}

function judged({ status, json, text }: CoreReply, { cdiVersion }: CoreSpeech): Result<null, string> {
  const versions = json?.['versions'];
  if (status === 401 || status === 403) return refuse(`refuses us (status ${String(status)}): is the api-key in the curl config file right?`);
  if (status !== 200 || !Array.isArray(versions)) {
    return refuse(`does not say which versions it speaks (status ${String(status)}${text === '' ? '' : `, ${text}`})`);
  }
  const spoken = versions.filter((version) => typeof version === 'string' && /^\d{1,3}\.\d{1,3}$/.test(version));
  if (spoken.includes(cdiVersion)) return accept(null);
  return refuse(`does not speak version ${cdiVersion} of its driver interface; allowed: ${spoken.slice(0, 40).join(', ') || 'none that it names'}`);
}
