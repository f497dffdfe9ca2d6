/** Nothing lost, nothing doubled, whoever is killed. The long version has 100 000 users. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startImportCore } from '../support/import-core.js';
import { importWithKills, randomFrom } from '../support/import-kills.js';
import { createUserMaker, userLines } from '../support/import-users.js';

const users = 300;
const seed = Number(process.env['SALLYPORT_SEED'] ?? 1 + (Date.now() % 1_000_000));

t.test(
  `300 mixed users, importer and Core killed at random, 2 % of the calls in trouble (seed ${String(seed)})`,
  async (t) => {
    const core = await startImportCore(t, { faults: '2%' });
    const make = createUserMaker();
    writeFileSync(join(core.dir, 'users.jsonl'), [...userLines(users, make)].join(''));
    const kills = { importer: 3, core: 1, random: randomFrom(seed), journalBytes: users * 105 };
    const { report, killed } = await importWithKills(t, core, 'users.jsonl', kills);
    t.ok(killed >= 1, `${killed} kills of the importer`);
    t.match(report, { total: users, created: users, existed: 0, rejected: 0, left: 0, complete: true });
    t.equal(await core.count(), users, 'nobody twice');
    for (let number = 0; number < users; number += 1) {
      const { proof } = make(number);
      if (!(await core.holds(proof))) t.fail(`lost: ${JSON.stringify(proof)}`);
    }
  },
);
