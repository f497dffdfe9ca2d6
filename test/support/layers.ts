/** Which folder of src may import which. A test holds the imports to it, another one the table of the page. */

export interface Layer {
  /** Start of the paths that belong to it; the longest match counts. */
  readonly path: string;
  /** Starts of the paths it may import besides its own. */
  readonly may: readonly string[];
  /** Of these only types. */
  readonly mayTypes?: readonly string[];
  /** Node's modules and packages it may use; `null` is any. */
  readonly modules: readonly string[] | null;
  /** No clock, process, waiting or throwing. */
  readonly pure?: true;
}

export const layers: readonly Layer[] = [
  { path: 'src/lib/', may: [], modules: ['node:crypto', 'node:net'], pure: true },
  // What the pure layers may not import, though it stands in lib: it waits, or touches the disk or the network.
  { path: 'src/lib/files.ts', may: [], modules: ['node:fs', 'node:fs/promises', 'node:path'] },
  { path: 'src/lib/http/', may: [], modules: ['undici'] },
  { path: 'src/lib/promises.ts', may: [], modules: ['node:timers/promises'] },
  { path: 'src/decision/', may: ['src/lib/'], modules: ['node:crypto', 'node:net'], pure: true },
  {
    path: 'src/config/',
    may: ['src/decision/', 'src/lib/'],
    modules: ['node:crypto', 'node:net', 'node:path', 'yaml', 'zod'],
  },
  // The script that writes the schema and the reference text, run by `npm run generate`.
  { path: 'src/config/docs/generate.ts', may: ['src/config/', 'src/decision/', 'src/lib/'], modules: null },
  { path: 'src/ports/', may: ['src/decision/', 'src/lib/'], modules: ['node:crypto'] },
  {
    path: 'src/proxy/',
    may: ['src/decision/', 'src/ports/', 'src/lib/'],
    mayTypes: ['src/config/', 'src/admin/'],
    modules: null,
  },
  {
    path: 'src/admin/',
    may: [
      'src/decision/',
      'src/ports/',
      'src/lib/',
      'src/proxy/inbound/',
      'src/proxy/node-internals/',
      'src/proxy/upstream/',
    ],
    mayTypes: ['src/config/', 'src/proxy/'],
    modules: null,
  },
  // What is used of Node beside its documented interface, in one place for whoever touches the world.
  { path: 'src/proxy/node-internals/', may: [], modules: null },
  {
    path: 'src/adapters/',
    may: ['src/decision/', 'src/ports/', 'src/config/', 'src/proxy/node-internals/', 'src/lib/'],
    modules: null,
  },
  // Calls to the Core, which programs import to mint tokens: loading them must not load the proxy, nor the schema of
  // its config.
  { path: 'src/core-api/', may: ['src/decision/', 'src/ports/', 'src/lib/'], mayTypes: ['src/config/'], modules: null },
  {
    path: 'src/client/',
    may: ['src/decision/', 'src/ports/', 'src/core-api/', 'src/adapters/system/clock.ts', 'src/lib/'],
    modules: ['node:crypto', 'node:events', 'undici'],
  },
  {
    path: 'src/policy-test/',
    may: [
      'src/decision/',
      'src/ports/',
      'src/config/',
      'src/proxy/auth/',
      'src/proxy/decide/plan-decision.ts',
      'src/proxy/idempotency/plan-reservation.ts',
      'src/proxy/upstream/address.ts',
      'src/lib/',
    ],
    mayTypes: ['src/proxy/'],
    modules: ['node:crypto', 'node:http', 'yaml', 'zod'],
  },
  // The tools beside the proxy. What reads and keeps an import knows its forms but none of its rules.
  {
    path: 'src/user-import/',
    may: ['src/decision/', 'src/ports/', 'src/core-api/', 'src/lib/'],
    modules: ['node:crypto', 'node:events', 'libphonenumber-js/max'],
  },
  {
    path: 'src/user-import/io/',
    may: ['src/decision/', 'src/ports/', 'src/adapters/files/', 'src/lib/'],
    mayTypes: ['src/user-import/'],
    modules: null,
  },
  { path: 'src/user-import/cli/', may: ['src/'], modules: null },
  // It shares no code with the client that it stands in for.
  { path: 'src/core-emulator/', may: ['src/lib/'], modules: null },
  { path: 'src/core-emulator/cli/', may: ['src/'], modules: null },
  { path: 'src/version.ts', may: [], modules: null },
  {
    path: 'src/app/',
    may: [
      'src/config/',
      'src/decision/',
      'src/ports/',
      'src/proxy/',
      'src/admin/',
      'src/adapters/',
      'src/core-api/',
      'src/lib/',
      'src/version.ts',
    ],
    modules: null,
  },
  {
    path: 'src/fastify/',
    may: [
      'src/app/',
      'src/config/',
      'src/decision/',
      'src/ports/',
      'src/proxy/',
      'src/admin/',
      'src/adapters/',
      'src/lib/',
      'src/version.ts',
    ],
    modules: null,
  },
  // Answers of people's questions are those of `explain` and `test`, loaded when the first one is asked.
  {
    path: 'src/app/console/',
    may: [
      'src/config/',
      'src/decision/',
      'src/ports/',
      'src/admin/',
      'src/app/store/',
      'src/policy-test/',
      'src/built/',
      'src/lib/',
    ],
    modules: ['node:timers/promises'],
  },
  // Runs in a browser, and knows of the rest what its answers look like.
  {
    path: 'src/console/',
    may: [],
    mayTypes: ['src/admin/', 'src/app/console/', 'src/policy-test/', 'src/ports/'],
    modules: ['preact', 'preact/hooks', 'uplot'],
  },
  // Runs in a browser, and has the rules and the policy tests in it, with stand-ins for what they take of Node.js.
  {
    path: 'src/playground/',
    may: [
      'src/admin/console/access.ts',
      'src/config/',
      'src/console/',
      'src/decision/',
      'src/policy-test/',
      'src/lib/',
    ],
    modules: [
      'preact',
      'preact/hooks',
      'zod',
      '@codemirror/autocomplete',
      '@codemirror/commands',
      '@codemirror/lang-yaml',
      '@codemirror/language',
      '@codemirror/lint',
      '@codemirror/state',
      '@codemirror/view',
      '@lezer/highlight',
    ],
  },
  {
    path: 'src/playground/node/',
    may: [],
    modules: ['@noble/hashes/legacy.js', '@noble/hashes/sha2.js', 'buffer/index.js', 'ipaddr.js'],
  },
  { path: 'src/cli/', may: ['src/'], modules: null },
  { path: 'src/main.ts', may: ['src/cli/', 'src/version.ts'], modules: null },
];
