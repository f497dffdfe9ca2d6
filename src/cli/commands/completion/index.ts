import { Argument, type Command } from 'commander';
import { shells, type Shell } from './tree.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';

/** `sallyport completion SHELL`: what makes a shell complete commands and options. */
export function createCompletionCommand(io: Io): Command {
  const command = defineCommand({
    name: 'completion',
    about: 'Print a script that completes commands, options and file names of sallyport.',
    examples: [
      ['bash, from the next terminal on', "echo 'source <(sallyport completion bash)' >> ~/.bashrc"],
      ['zsh', 'sallyport completion zsh > "${fpath[1]}/_sallyport"'],
      ['fish', 'sallyport completion fish > ~/.config/fish/completions/sallyport.fish'],
    ],
    exitCodes: { 0: 'printed', 2: 'usage' },
    page: 'docs/cli.md#completion',
  });
  return command
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action(async (shell: Shell, _options: object, asked: Command) => {
      const { completionScript } = await import('./script.js');
      io.stdout(completionScript(shell, asked.parent ?? asked));
    });
}
