import { validateConfig, type ConfigValidation } from '../../src/config/load/validate-config.js';
import { formatProblem } from '../../src/config/load/report.js';
import type { CompiledConfig } from '../../src/config/types.js';
import { accept, refuse } from '../../src/lib/result.js';

/** Sections and their text; `null` leaves one out. */
type Sections = Readonly<Record<string, string | null>>;

/** A config without problems, one section to a line, in this order. */
const sections: Sections = {
  listen: '{ host: 127.0.0.1, port: 8080 }',
  upstream: '{ url: "http://127.0.0.1:3000" }',
  issuers:
    '{ core: { issuer: "https://api.example.com", audience: orders, source: microservice, token_type: service } }',
  routes: '[{ name: a, methods: [GET], path: /a, subjects: [checkout], permissions: [read] }]',
};

/** What a config may refer to. */
export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

/** A config with sections replaced, left out (`null`) or added. */
export function configText(changes: Sections = {}): string {
  return Object.entries({ ...sections, ...changes })
    .flatMap(([key, value]) => (value === null ? [] : [`${key}: ${value}\n`]))
    .join('');
}

/** A config whose only routes are these, one to a line from line 5 on. */
export function withRoutes(routes: readonly string[], changes: Sections = {}): string {
  return `${configText({ ...changes, routes: null })}routes:\n${routes.map((route) => `- { ${route} }\n`).join('')}`;
}

export function inspect(text: string, { env = {}, files = {} }: Surroundings = {}): ConfigValidation {
  return validateConfig(text, {
    file: 'c.yaml',
    folder: '/etc/sallyport',
    env,
    readFile: (path) => {
      const content = files[path];
      return content === undefined ? refuse('no such file') : accept(content);
    },
  });
}

/** The problems of a config, as `check` prints them. */
export function problemsOf(text: string, surroundings: Surroundings = {}): readonly string[] {
  return inspect(text, surroundings).problems.map(formatProblem);
}

/** The errors of a config, without those that only warn. */
export function errorsOf(text: string, surroundings: Surroundings = {}): readonly string[] {
  return problemsOf(text, surroundings).filter((problem) => problem.includes(': error: '));
}

/** A config that has no errors. */
export function compiled(text: string, surroundings: Surroundings = {}): CompiledConfig {
  const { config, problems } = inspect(text, surroundings);
  if (config === null) throw new Error(problems.map(formatProblem).join('\n'));
  return config;
}
