import { waitUntil } from '../../../lib/promises.js';
import type { RevocationStore } from '../../../ports/revocations.js';
import { ok, problem, warning, type Finding } from './finding.js';

const subject = 'revocations';

/** How long news may take to be listened for, milliseconds. */
const withinMs = 1_000;

const fix = 'give its user the rights and the channel that docs/storage.md names';

/**
 * Reads what is revoked as the proxy would, and listens for news. Says so on the channel once, which changes nothing.
 */
export async function checkRevocations(store: RevocationStore): Promise<Finding> {
  const loaded = await store.load(null);
  if (!loaded.ok || loaded.value === null) {
    const reason = loaded.ok ? 'no answer' : loaded.error.reason;
    return problem(subject, `Redis refuses what revocations need, and no proxy gets ready: ${reason}`, fix);
  }
  const { unreadable, revocations } = loaded.value;
  if (unreadable.length > 0) {
    const what = `${String(unreadable.length)} records cannot be read, and are not in force`;
    return problem(
      subject,
      what,
      'look with `sallyport revoke --list`, take them away with `--undo ID` or HDEL, and revoke again',
    );
  }
  const announced = await store.announce();
  const isHeard = await hearsNews(store);
  if (isHeard && announced.ok && announced.value) {
    return ok(subject, `${String(revocations.length)} in the store; changes are told at once`);
  }
  return warning(
    subject,
    'Redis passes no news on: proxies learn of a revocation when they look next, within half a second',
    fix,
  );
}

async function hearsNews(store: RevocationStore): Promise<boolean> {
  const news = store.follow(() => undefined);
  const isOpen = await waitUntil(news.isOpen, withinMs);
  news.close();
  return isOpen;
}
