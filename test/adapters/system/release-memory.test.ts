import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { collectGarbage, releaseMemory } from '../../../src/adapters/system/release-memory.js';

for (const collect of [releaseMemory, collectGarbage, collectGarbage]) {
  t.test(`${collect.name}: what nobody refers to any more is collected at once, and nothing else`, async (t) => {
    const kept = { name: 'kept' };
    const references = [new WeakRef(kept), new WeakRef({ name: 'garbage' })];
    // What a weak reference was made for lives until the end of the job that made it.
    await turn();
    collect();
    t.same(
      references.map((reference) => reference.deref()?.name),
      [kept.name, undefined],
    );
    t.notOk('gc' in globalThis, "the collector is within nobody's reach");
  });
}
