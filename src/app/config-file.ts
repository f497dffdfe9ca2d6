import { accept, type Result } from '../decision/result.js';
import type { FileWatch } from '../ports.js';
import { watchFile } from '../adapters/file-watch.js';
import { readText, textDigest } from '../adapters/text-file.js';

/** Where the config comes from. */
export interface ConfigSource {
  /** As problems and logs name it. */
  readonly name: string;
  /** The text, or why it cannot be had, in words that follow the name. */
  readonly read: () => Promise<Result<string, string>>;
  /** Calls back when the text is no longer the one that was read last, whoever asked for that. */
  readonly watch: (onChange: () => void) => Pick<FileWatch, 'close'>;
}

/** A config of a thousand routes takes some 200 KiB. */
export const maxConfigBytes = 4 * 1024 * 1024;

/** A secret in a placeholder's file: a key of 16384 bits in PEM takes 13 KiB. */
export const maxPlaceholderBytes = 64 * 1024;

/** A file, watched. `intervalMs` is how often it is looked at. */
export function fileSource(path: string, name = path, intervalMs?: number): ConfigSource {
  const limits = { maxBytes: maxConfigBytes };
  const pace = intervalMs === undefined ? {} : { intervalMs };
  let digest: string | null = null;
  let watch: FileWatch | null = null;
  return {
    name,
    read: async () => {
      const text = await readText(path, limits);
      const read = text.ok ? accept(textDigest(text.value)) : text;
      digest = read.ok ? read.value : null;
      watch?.loaded(read);
      return text;
    },
    watch: (onChange) => {
      watch = watchFile(path, onChange, { digest, ...limits, ...pace });
      return watch;
    },
  };
}

/** A text that stays as it is. */
export function textSource(text: string, name: string): ConfigSource {
  return { name, read: () => Promise.resolve(accept(text)), watch: () => ({ close: () => undefined }) };
}
