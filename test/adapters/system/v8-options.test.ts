import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { servingOptions } from '../../../src/adapters/system/v8-options.js';

const module = pathToFileURL(join(import.meta.dirname, '../../../src/adapters/system/v8-options.js')).href;

t.test('V8 of this Node.js knows each option', (t) => {
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 16 * 1024 ** 2 });
  for (const option of servingOptions) {
    const [name = ''] = option.replace(/^--(no-)?/, '').split('=');
    t.match(known, new RegExp(`^ +--${name} `, 'm'), option);
  }
  t.end();
});

t.test('they can be set while a program runs, which collects and compiles on', (t) => {
  const program = `
    const { tuneForServing } = await import('${module}');
    tuneForServing();
    const kept = new Map();
    for (let round = 0; round < 200_000; round += 1) kept.set(round % 5_000, { text: 'x'.repeat(round % 90), round });
    process.stdout.write(String(kept.size));
  `;
  const args = ['--max-semi-space-size=1', '--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  t.equal(stderr, '', 'an option that is not known is said there');
  t.equal(stdout, '5000');
  t.equal(status, 0);
  t.end();
});
