import { dirname, isAbsolute, resolve } from 'node:path';
import { maxConfigBytes } from '../../config/load/yaml.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { AskedWatch, FileWatch } from '../../ports/system.js';
import { watchFile } from '../../adapters/files/file-watch.js';
import type { FileSnapshot, OnFile } from './file-snapshot.js';
import { readText, readTextSync, textDigest } from '../../adapters/files/read-file.js';

/** Where the config comes from. */
export interface ConfigSource {
  /** As problems and logs name it. */
  readonly name: string;
  /** Absolute path of the folder that relative paths in it start from. */
  readonly folder: string;
  /** The text as it is now, or why it cannot be had, in words that follow the name. */
  readonly read: () => Promise<Result<string, string>>;
  /** Calls back with the text when it is no longer the one that was read or told of last. */
  readonly watch: (onChange: (text: Result<string, string>) => void, leastAgeMs?: () => number) => ConfigWatch;
}

export type ConfigWatch = Pick<AskedWatch, 'settled' | 'close'>;

/** A secret in a placeholder's file: a key of 16384 bits in PEM takes 13 KiB. */
const maxPlaceholderBytes = 64 * 1024;

/** A file, watched. `intervalMs` is how often it is looked at. */
export function fileSource(path: string, name = path, intervalMs?: number): ConfigSource {
  const limits = { maxBytes: maxConfigBytes };
  let digest: string | null = null;
  let watch: FileWatch | null = null;
  return {
    name,
    folder: dirname(resolve(path)),
    read: async () => {
      const text = await readText(path, limits);
      const read = text.ok ? accept(textDigest(text.value)) : text;
      digest = read.ok ? read.value : null;
      watch?.loaded(read);
      return text;
    },
    watch: (onChange, leastAgeMs) => {
      const own = watchFile(path, onChange, {
        digest,
        ...limits,
        intervalMs,
        ...(leastAgeMs === undefined ? {} : { leastAgeMs }),
      });
      watch = own;
      return own;
    },
  };
}

/** A text that stays as it is, and names no files. */
export function textSource(text: string, name: string): ConfigSource {
  return fixedSource(() => Promise.resolve(accept(text)), { name, folder: '/' });
}

/** A text that is read and does not change. */
export function fixedSource(read: ConfigSource['read'], place: Pick<ConfigSource, 'name' | 'folder'>): ConfigSource {
  return { ...place, read, watch: () => ({ settled: read, close: () => undefined }) };
}

/** A source whose texts, or what is said in their place, are changed before anybody sees them. */
export function changedSource(
  { read, watch, ...place }: ConfigSource,
  change: (text: Result<string, string>) => Result<string, string>,
): ConfigSource {
  return {
    ...place,
    read: async () => change(await read()),
    watch: (onChange, leastAgeMs) => {
      const own = watch((text) => {
        onChange(change(text));
      }, leastAgeMs);
      return {
        settled: async (onWait) => {
          const text = await own.settled(onWait);
          return text === null ? null : change(text);
        },
        close: own.close,
      };
    },
  };
}

/** Reads the files of a config's placeholders. A refusal says where it looked, where the config does not. */
export function placeholderReader(
  { folder }: Pick<ConfigSource, 'folder'>,
  onFile?: OnFile,
  held?: FileSnapshot,
): (path: string) => Result<string, string> {
  return (path) => {
    const whole = resolve(folder, path);
    const kept = held?.get(whole);
    const text = kept === undefined ? readTextSync(whole, { maxBytes: maxPlaceholderBytes }) : accept(kept);
    onFile?.(whole, text, maxPlaceholderBytes);
    return text.ok || isAbsolute(path) ? text : refuse(`${whole} ${text.error}`);
  };
}
