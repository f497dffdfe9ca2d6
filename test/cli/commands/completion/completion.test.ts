import t from 'tap';
import { run } from '../../../../src/cli/program.js';
import { captureIo } from '../../captured-io.js';
import { completionOf } from './completion-checks.js';
import { pathOf, wholeProgram, withChildren } from '../../whole-program.js';

t.test('every option of every command is in each script', async (t) => {
  const scripts = {
    bash: await completionOf('bash'),
    zsh: await completionOf('zsh'),
    fish: await completionOf('fish'),
  };
  for (const command of withChildren(await wholeProgram()).filter((one) => one.name() !== 'help')) {
    for (const { long = '' } of command.options) {
      t.ok(scripts.bash.includes(`${long} `) || scripts.bash.includes(`${long}'`), `bash: ${pathOf(command)} ${long}`);
      t.ok(scripts.zsh.includes(`${long}[`) || scripts.zsh.includes(`${long}}`), `zsh: ${pathOf(command)} ${long}`);
      t.match(
        scripts.fish,
        new RegExp(
          `^complete -c sallyport -n '__sallyport_at ${pathOf(command)}' (?:-s \\w )?-l ${long.slice(2)} `,
          'm',
        ),
      );
    }
  }
});

t.test('a shell other than bash, zsh and fish is wrong usage', async (t) => {
  const io = captureIo();
  await run(['completion', 'tcsh'], io);
  t.equal(io.code(), 2);
  t.match(io.err(), /Allowed choices are bash, zsh, fish/);
});
