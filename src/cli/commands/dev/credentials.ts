import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Tokens in files that `curl -H @FILE` reads: a command with the token in it fills a screen, and stands in the list of
 * processes.
 */
export interface DevCredentials {
  /** Keeps a token, and returns the file of its header. @param name of `[a-z]`, one a token. */
  readonly keep: (name: string, token: string) => Promise<string>;
  /** Writes another file beside them, and returns its name. */
  readonly write: (name: string, content: string | Uint8Array) => Promise<string>;
  /** Takes all of them away. */
  readonly remove: () => Promise<void>;
}

/** Makes a folder for them that nobody else may look into. */
export async function createDevCredentials(): Promise<DevCredentials> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-dev-'));
  return {
    keep: async (name, token) => {
      const file = join(folder, name);
      await writeFile(file, `Authorization: Bearer ${token}\n`, { mode: 0o600, flag: 'wx' });
      return file;
    },
    write: async (name, content) => {
      const file = join(folder, name);
      await writeFile(file, content, { mode: 0o600, flag: 'wx' });
      return file;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
