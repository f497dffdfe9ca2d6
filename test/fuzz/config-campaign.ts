/** Tries configs by the thousand: what is accepted has to decide as its text reads, and nothing may throw. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { CompiledConfig } from '../../src/config/types.js';
import { validateConfig, type ConfigValidation } from '../../src/config/load/validate-config.js';
import { formatProblem } from '../../src/config/load/report.js';
import type { Scope } from '../support/scope.js';
import { damagedText, policyText, someAsk, somePolicy } from './configs.js';
import { drawFrom, once, pick } from './draw.js';
import { createStage, openUpstream, tryHead } from './in-process.js';
import { makeTokens } from './keyring.js';
import { policies } from './policies.js';

export interface ConfigReport {
  /** Configs and requests to them. */
  readonly cases: number;
  readonly accepted: number;
  readonly refused: number;
  readonly faults: readonly string[];
}

/** Requests to each accepted table of routes. */
const asksPerTable = 12;
const maxFaults = 10;

/** Tables of routes at random, and requests to those that are accepted. */
export async function runTables(t: Scope, seed: number, cases: number): Promise<ConfigReport> {
  const tokens = makeTokens(seed, 40);
  const faults: string[] = [];
  let [tried, accepted, refused] = [0, 0, 0];
  let upstream: ReturnType<typeof openUpstream> | null = null;
  for (let number = 0; tried < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const policy = somePolicy(draw);
    const { config } = inspect(policyText(policy));
    tried += 1;
    if (config === null) {
      refused += 1;
      continue;
    }
    accepted += 1;
    upstream ??= openUpstream(t, config);
    const stage = createStage(policy, config, upstream);
    for (let ask = 0; ask < asksPerTable; ask++) {
      const head = someAsk(draw, tokens);
      const { fault } = await tryHead(head, stage);
      tried += 1;
      if (fault !== null) {
        faults.push(
          `seed ${String(seed)}, table ${String(number)}: ${fault}\n${JSON.stringify(head)}\n${JSON.stringify(policy.routes)}`,
        );
      }
    }
  }
  return { cases: tried, accepted, refused, faults };
}

/** Sound configs with their text changed. */
export function runDamaged(seed: number, cases: number): ConfigReport {
  const texts = [...policies.map(policyText), readFileSync('config.example.yaml', 'utf8')];
  const faults: string[] = [];
  let [number, accepted, refused] = [0, 0, 0];
  for (; number < cases && faults.length < maxFaults; number++) {
    const draw = drawFrom(seed, number);
    const text = once(draw, 4) ? damagedText(draw, policyText(somePolicy(draw))) : damagedText(draw, pick(draw, texts));
    const fault = faultOf(text);
    if (fault === null) accepted += 1;
    if (fault === 'refused') refused += 1;
    else if (fault !== null) {
      faults.push(`seed ${String(seed)}, config ${String(number)}: ${fault}\n${text.slice(0, 6000)}`);
    }
  }
  return { cases: number, accepted, refused, faults };
}

function faultOf(text: string): string | null {
  let inspection: ConfigValidation;
  try {
    inspection = inspect(text);
  } catch (error) {
    return `throws ${String(error)}`;
  }
  const { config, problems } = inspection;
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (problems.some((problem) => /[\r\n\0]/.test(formatProblem(problem)))) return 'a problem of more than one line';
  if (config === null) return errors.length === 0 ? 'refused without a word' : 'refused';
  if (errors.length > 0) return 'accepted in spite of errors';
  return differsFrom(config, parse(text) as WrittenConfig);
}

/** As anybody reads the YAML. */
interface WrittenConfig {
  readonly routes: readonly {
    readonly name: string;
    readonly access?: string;
    readonly methods: readonly string[];
    readonly subjects?: readonly string[];
    readonly any_of?: readonly { readonly subjects: readonly string[] }[];
  }[];
  readonly issuers: Readonly<Record<string, { readonly issuer: string; readonly audience: string }>>;
}

/** Whom the compiled config lets in, against what is written. */
function differsFrom(config: CompiledConfig, written: WrittenConfig): string | null {
  const compiled = config.routes.map((route) => [
    route.name,
    route.access === 'public',
    sorted(route.methods ?? ['*']),
    route.approvals.map(({ subjects }) => sorted(subjects)),
  ]);
  const read = written.routes.map((route) => [
    route.name,
    route.access === 'public',
    sorted(route.methods),
    pairsOf(route).map(({ subjects }) => sorted(subjects)),
  ]);
  if (JSON.stringify(compiled) !== JSON.stringify(read)) {
    return `means ${JSON.stringify(compiled)} and says ${JSON.stringify(read)}`;
  }
  const issuers = config.issuers.map(({ rules }) => [rules.name, rules.issuer, rules.audience]);
  const named = Object.entries(written.issuers).map(([name, { issuer, audience }]) => [name, issuer, audience]);
  return JSON.stringify(issuers) === JSON.stringify(named)
    ? null
    : `trusts ${JSON.stringify(issuers)} and says ${JSON.stringify(named)}`;
}

function inspect(text: string): ConfigValidation {
  // The variable stands for what is written, so that whoever reads the YAML alone reads the same.
  return validateConfig(text, {
    file: 'fuzz.yaml',
    folder: '/',
    env: { HOME: '${env:HOME}' },
    readFile: () => ({ ok: false, error: 'no files here' }),
  });
}

function pairsOf({
  access,
  subjects,
  any_of: pairs,
}: WrittenConfig['routes'][number]): readonly { readonly subjects: readonly string[] }[] {
  return pairs ?? (access === 'public' || subjects === undefined ? [] : [{ subjects }]);
}

function sorted(list: Iterable<string>): string[] {
  return [...new Set(list)].sort();
}
