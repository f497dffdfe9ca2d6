import { resolve } from 'node:path';

/** The folder of `package.json`, seen from where the compiled tests lie. */
export const projectDir = resolve(import.meta.dirname, '../../..');
