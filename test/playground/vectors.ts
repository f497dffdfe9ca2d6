/** Configs, sound and damaged, and cases for them: what Node.js says of each, the page has to say too. */
import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { drawFrom, once, pick } from '../fuzz/draw.js';
import { damagedText, policyText, somePolicy } from '../fuzz/configs.js';
import { policies } from '../fuzz/policies.js';
import { agreedConfig, casesOf, generateRequests } from '../policy-test/simulate/agreement.js';
import { baseConfig } from '../support/proxy-process.js';
import { readVectors } from '../vectors/corpus.js';

export interface Vector {
  readonly name: string;
  readonly config: string;
  /** `null` is what is written for the config as it stands. */
  readonly tests: string | null;
}

interface TargetVectors {
  readonly accepted: readonly { readonly input: string }[];
  readonly refused: readonly { readonly input: string }[];
}

const here = { upstream: { url: 'http://127.0.0.1:3000' } };
const sessions = { sessions: { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' } };

/** A file of policy tests with these cases. */
const files = (cases: readonly object[]): string =>
  stringify({ config: 'sallyport.yaml', cases }, { aliasDuplicateObjects: false });

const agreed = baseConfig({ ...agreedConfig, ...sessions, ...here });
const { accepted, refused } = readVectors('targets.json') as TargetVectors;
const targets = [
  ...[...accepted, ...refused].map(({ input }) => input),
  ...(readVectors('hostile-targets.json') as readonly string[]),
].filter((path) => path !== '');

/** Every kind of policy; requests made at random and attacks on them. */
export function soundVectors(seed: number, requests: number, tables: number): readonly Vector[] {
  return [
    { name: 'the example', config: readFileSync('config.example.yaml', 'utf8'), tests: null },
    { name: 'requests at random', config: agreed, tests: files(casesOf(generateRequests(requests, seed))) },
    {
      name: 'targets',
      config: agreed,
      tests: files(
        targets.map((path, index) => ({
          name: `target ${index}`,
          request: { method: 'GET', path },
          claims: { sub: 'checkout', permissions: ['orders:read'] },
          expect: { status: 599 },
        })),
      ),
    },
    ...policies.map((policy, index) => ({ name: `policy ${index}`, config: policyText(policy), tests: null })),
    ...Array.from({ length: tables }, (_, number) => ({
      name: `table ${number}`,
      config: policyText(somePolicy(drawFrom(seed, number))),
      tests: null,
    })),
  ];
}

const tags = ['!!binary', '!!timestamp', '!!set', '!!omap', '!!pairs', '!!float', '!!int', '!!str', '!', '!x', '!x!y'];

/** Texts that are no longer sound, most of them. */
export function damagedConfigs(seed: number, count: number): readonly string[] {
  const texts = [...policies.map(policyText), readFileSync('config.example.yaml', 'utf8')];
  const drawn = Array.from({ length: count }, (_, number) => {
    const draw = drawFrom(seed, number);
    return damagedText(draw, once(draw, 4) ? policyText(somePolicy(draw)) : pick(draw, texts));
  });
  // What the YAML library makes of tags of its own depends on where it runs.
  return [...tags.map((tag) => `log:\n  ${tag} level: info\n`), ...drawn];
}
