import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commandReference } from '../../../src/cli/docs/reference.js';
import { projectDir } from '../../support/project-dir.js';
import { offeredOptions, wholeProgram } from '../whole-program.js';

const page = readFileSync(join(projectDir, 'docs/cli.md'), 'utf8');

t.test('docs/cli.md is what the commands say', async (t) => {
  t.equal(page, commandReference(await wholeProgram()), 'npm run generate writes it');
});

t.test('docs/cli.md has every command with every option', async (t) => {
  for (const command of (await wholeProgram()).commands) {
    if (command.name() === 'help') continue;
    const start = page.indexOf(`\n## ${command.name()}\n`);
    t.ok(start > 0, command.name());
    const section = page.slice(start, page.indexOf('\n## ', start + 1) >>> 0);
    for (const option of await offeredOptions(command.name())) {
      t.ok(section.includes(option), `${command.name()} ${option}`);
    }
    for (const below of command.commands.filter((child) => child.name() !== 'help')) {
      t.match(section, `\n### ${command.name()} ${below.name()}\n`);
      for (const { long } of below.options) {
        t.ok(section.includes(`\`${long ?? ''}`), `${command.name()} ${below.name()} ${long ?? ''}`);
      }
    }
  }
});
