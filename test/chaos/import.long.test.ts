/** 100 000 mixed users through kills and trouble, then checked one by one. Takes some minutes. */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import t from 'tap';
import { startImportCore, type ImportCore } from '../support/import-core.js';
import { importWithKills, randomFrom } from '../support/import-kills.js';
import { createUserMaker, userLines, type MadeUser } from '../support/import-users.js';

const users = Number(process.env['SALLYPORT_IMPORT_USERS'] ?? 100_000);
const seed = Number(process.env['SALLYPORT_SEED'] ?? 1 + (Date.now() % 1_000_000));

t.setTimeout(40 * 60_000);

t.test(
  `${String(users)} users, 50 kills of the importer, 10 of the Core, 2 % of the calls in trouble (seed ${String(seed)})`,
  async (t) => {
    const core = await startImportCore(t, { faults: '2%' });
    const make = createUserMaker();
    await pipeline(Readable.from(userLines(users, make)), createWriteStream(join(core.dir, 'users.jsonl')));
    const started = performance.now();
    const kills = { importer: 50, core: 10, random: randomFrom(seed), journalBytes: users * 105 };
    const { report, runs, killed } = await importWithKills(t, core, 'users.jsonl', kills);
    t.comment(`${runs} runs, ${killed} of them killed, ${((performance.now() - started) / 1_000).toFixed(0)} s`);
    t.ok(killed >= 45, `${killed} kills of the importer`);
    t.match(report, { total: users, created: users, existed: 0, rejected: 0, left: 0, complete: true });
    const checking = performance.now();
    t.equal(await core.count(), users, 'nobody twice');
    t.same(await missing(core, make), [], 'nobody is lost, and every password signs in');
    t.comment(`checked in ${((performance.now() - checking) / 1_000).toFixed(0)} s`);
  },
);

/** The first few whom the Core does not hold as the file says. */
async function missing(core: ImportCore, make: (number: number) => MadeUser): Promise<readonly string[]> {
  const lost: string[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (next < users && lost.length < 10) {
        const { proof } = make(next);
        next += 1;
        if (!(await core.holds(proof))) lost.push(JSON.stringify(proof));
      }
    }),
  );
  return lost;
}
