import { resolve } from 'node:path';

/** The absolute path of a file that a config names; a relative path starts from the config's folder. */
export function located(folder: string, path: string): string;
export function located(folder: string, path: string | null): string | null;
export function located(folder: string, path: string | null): string | null {
  return path === null ? null : resolve(folder, path);
}
