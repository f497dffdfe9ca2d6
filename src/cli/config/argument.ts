import type { Command } from 'commander';

/** Where a config is looked for when no argument names one. */
export const configVariable = 'SALLYPORT_CONFIG';
export const defaultConfig = 'sallyport.yaml';

/** How arguments name a config. */
export interface ConfigArguments {
  readonly file?: string | undefined;
  readonly config?: string | undefined;
  /** Whether standard input holds a token. */
  readonly tokenStdin?: true;
}

/** Has a command take a config as FILE or as `--config FILE`. */
export function takesConfig(command: Command, what = 'the config; - is standard input'): Command {
  return command.argument('[file]', what).option('--config <file>', 'the config, named by an option');
}

/** Said by the help of every command that looks for its config by itself. */
export const configNote =
  `Without FILE or --config, the config is the file that $${configVariable} names, else ./${defaultConfig}. ` +
  'Relative paths in it start from its own folder; from standard input, from the working folder.';
