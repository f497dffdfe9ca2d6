import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { checkInShadow } from './shadow-suite.js';

/** They count what reaches their key servers and receivers, or end their proxy: a second proxy would be in the way. */
const alone = ['keys', 'lifecycle', 'operators', 'receiver-failures', 'connections', 'shadow'];

t.setTimeout(900_000);

t.test('contract 3.6: the conformance suite in shadow mode', async (t) => {
  const names = readdirSync(join(projectDir, '.build/test/conformance')).flatMap((file) => /^([a-z-]+)\.test\.js$/.exec(file)?.[1] ?? []);
  const { passed, refused, allowed } = await checkInShadow(t, names.filter((name) => !alone.includes(name)));
  t.ok(passed > 300 && refused > 200 && allowed > 300, `${String(passed)} passed, ${String(refused)} refused alike, ${String(allowed)} allowed alike`);
});
