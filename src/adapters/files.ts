import type { Files } from '../ports.js';
import { watchFile } from './file-watch.js';
import { readText, textDigest } from './text-file.js';

/** The machine's files. */
export const localFiles: Files = { read: readText, digest: textDigest, watch: watchFile };
