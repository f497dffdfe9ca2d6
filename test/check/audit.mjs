/**
 * Asks the registry for known vulnerabilities of what is deployed. Whoever works without one is told, and not stopped.
 */
import { run } from './step.mjs';

/** What ends a run; the rest is printed. */
const serious = ['high', 'critical'];

export async function audit() {
  const { output } = await run('npm', ['audit', '--omit=dev', '--json', '--fetch-retries=0', '--fetch-timeout=20000']);
  const found = readAudit(output);
  if (found === null) {
    console.log('       npm audit: the registry could not be asked, so nothing is known of vulnerabilities');
    return { held: true };
  }
  for (const { name, severity, titles } of found) {
    console.log(`       npm audit: ${name}, ${severity}: ${titles.join('; ')}`);
  }
  return {
    held: !found.some(({ severity }) => serious.includes(severity)),
    output: 'known vulnerabilities: see the lines above',
  };
}

/** What `npm audit --json` found; `null` where it could not ask. */
export function readAudit(output) {
  const start = output.indexOf('{');
  try {
    const { vulnerabilities } = JSON.parse(output.slice(start, output.lastIndexOf('}') + 1));
    if (typeof vulnerabilities !== 'object' || vulnerabilities === null) return null;
    return Object.values(vulnerabilities).map(({ name, severity, via }) => ({
      name,
      severity,
      titles: via.map((cause) => (typeof cause === 'string' ? `through ${cause}` : cause.title)),
    }));
  } catch {
    return null;
  }
}
