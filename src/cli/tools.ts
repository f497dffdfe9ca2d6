import type { Command } from 'commander';
import type { Io } from './io.js';

/** Loads the function that makes a command. */
export type LoadCommand = () => Promise<(io: Io) => Command>;

/** Commands beside the proxy: with the Core emulator, which mints any token, or the import, which reads every user. */
export type ToolName = 'dev' | 'import' | 'core';

type Tools = Readonly<Partial<Record<ToolName, LoadCommand>>>;

/** The tools. The proxy's image has none of them: its bundle is made with an empty list in place of this one. */
export const tools: Tools = {
  dev: async () => (await import('./commands/dev/index.js')).createDevCommand,
  import: async () => (await import('../user-import/cli/index.js')).createImportCommand,
  core: async () => (await import('../core-emulator/cli/index.js')).createCoreCommand,
};
