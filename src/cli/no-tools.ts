import type { Tools } from './tools.js';

/** What the bundle of the proxy's image has in place of `tools.ts`. */
export const tools: Tools = {};
