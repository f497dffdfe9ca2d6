import { mkdir, realpath } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileExposure } from '../../../adapters/files/files.js';
import { placeholderReader } from '../../../app/config/config-source.js';
import { startFailure } from '../../../app/start-failure.js';
import { validateConfig, type ConfigValidation } from '../../../config/load/validate-config.js';
import { formatProblem } from '../../../config/load/report.js';
import type { CompiledConfig } from '../../../config/types.js';
import { codeOf } from '../../../lib/errors.js';
import { replaceFile, pathIn } from '../../../lib/files.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { diffLines } from '../../../policy-test/diff/format.js';
import { comparePolicies } from '../../../policy-test/diff/policy-diff.js';
import { createLearner, type Findings } from '../../../policy-test/learn/learner.js';
import { propose, type Proposal } from '../../../policy-test/learn/proposal.js';
import { reportLines } from '../../../policy-test/learn/report.js';
import { settleProposal } from '../../../policy-test/learn/settle-proposal.js';
import { defaultCaps, type LearnTerms } from '../../../policy-test/learn/terms.js';
import { writeConfig } from '../../../policy-test/learn/write-config.js';
import { decideOnly } from '../../../policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../../../policy-test/simulate/test-keys.js';
import { draftSuite } from '../../../policy-test/suite/draft-suite.js';
import { inputArgument } from '../../config/choose.js';
import { loadChosen } from '../../config/load.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';
import { readLogs } from './read-logs.js';

export interface LearnOptions extends LearnTerms {
  readonly config?: string;
  readonly out?: string;
  readonly json?: true;
}

const names = { config: 'learnt.yaml', tests: 'learnt.test.yaml', diff: 'learnt.diff', report: 'learnt.txt' } as const;

const header = '# Written by sallyport learn, and not in force: read it, check it, and put it in place by hand.\n';

/** Reads logs of shadow mode, says what they would make of the policy, and writes it down where that is asked for. */
export async function learn(logs: readonly string[], options: LearnOptions, io: Io): Promise<void> {
  const places = logs.map((log) => (log === inputArgument ? log : pathIn(io, log)));
  const doubled = logs.find((_, at) => places.indexOf(places[at] ?? '') < at);
  if (doubled !== undefined) {
    failUsage('learn', `${doubled} is named twice, and its lines would count twice`, io);
    return;
  }
  if (options.config === inputArgument) {
    failUsage('learn', '--config has to be a file: what is proposed is written into its text', io);
    return;
  }
  const loaded = await loadChosen({ config: options.config }, io);
  if (!loaded.ok) {
    fail(loaded.error, io);
    return;
  }
  const { config, source, path } = loaded.value;
  const folder = options.out === undefined ? source.folder : pathIn(io, options.out);
  const taken = await isTaken(folder, path ?? '');
  const text = await source.read();
  if (taken || !text.ok) {
    const why = taken ? `${join(folder, names.config)} is the config in force: name another folder by --out` : '';
    fail(startFailure('unreadable', text.ok ? why : `${source.name}: ${text.error}`), io);
    return;
  }
  const learner = createLearner(config, options, defaultCaps);
  const read = await readLogs(logs, defaultCaps.lineBytes, io, learner.add);
  if (!read.ok) {
    fail(startFailure('unreadable', read.error), io);
    return;
  }
  const findings = learner.finish();
  const moved = (file: string): string => relative(folder, resolve(source.folder, file)) || file;
  const validate = (written: string): ConfigValidation =>
    validateConfig(written, {
      file: names.config,
      folder,
      env: io.env,
      readFile: placeholderReader({ folder }),
      exposureOf: (file) => fileExposure(resolve(folder, file)),
    });
  const write = (proposed: Proposal): ReturnType<typeof writeConfig> =>
    writeConfig(header + text.value, proposed, { issuersApart: config.issuers.length > 1, moved });
  const settled = settleProposal(propose(findings, config, options), write, validate);
  const { proposal, validation } = settled;
  const report = `${reportLines(findings, proposal).join('\n')}\n`;
  if (options.json === true) io.stdout(`${JSON.stringify(asJson(findings, proposal))}\n`);
  else io.stdout(report);
  for (const problem of validation.problems) io.stderr(`${formatProblem(problem)}\n`);
  if (validation.config === null) {
    io.exit(1);
    return;
  }
  if (options.out !== undefined) {
    const enforced = validate(write({ ...proposal, routes: [], subjects: [] }).text).config;
    const files = await filesOf(settled.text, report, [config, enforced, validation.config]);
    const written = await writeFiles(folder, files);
    if (!written.ok) {
      fail(startFailure('unreadable', written.error), io);
      return;
    }
    io.stderr(`wrote ${Object.values(names).join(', ')} into ${options.out}; nothing is put in force\n`);
  }
  io.exit(validation.problems.length === 0 ? 0 : 1);
}

/** Whether the file that would be written is the config that is read, under whatever name. */
async function isTaken(folder: string, config: string): Promise<boolean> {
  const real = (path: string): Promise<string> => realpath(path).catch(() => resolve(path));
  return (await real(join(folder, names.config))) === (await real(config));
}

async function filesOf(
  text: string,
  report: string,
  [from, enforced, to]: readonly [CompiledConfig, CompiledConfig | null, CompiledConfig],
): Promise<Readonly<Record<string, string>>> {
  const keys = createAssumedKeys();
  const active = (config: CompiledConfig): ReturnType<typeof decideOnly> =>
    decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
  const nowMs = Date.now();
  const changes = async (config: CompiledConfig): Promise<string> =>
    `${diffLines(await comparePolicies({ from: active(config), to: active(to), keys, nowMs })).join('\n')}\n`;
  const { text: tests } = await draftSuite(names.config, active(to), keys, nowMs);
  return {
    [names.config]: text,
    [names.tests]: `# Written by sallyport learn: what ${names.config} decides. Read it: a case that should not pass is a hole.\n${tests}`,
    [names.diff]:
      `From the config in force, shadow mode and all, to ${names.config}:\n\n${await changes(from)}` +
      (enforced === null
        ? ''
        : `\nFrom the config in force, if it were enforced as it stands, to ${names.config}:\n\n${await changes(enforced)}`),
    [names.report]: report,
  };
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<Result<null, string>> {
  try {
    await mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await replaceFile(join(folder, name), text, 0o600);
    return accept(null);
  } catch (error) {
    return refuse(`${folder} cannot be written into (${codeOf(error)})`);
  }
}

function asJson(
  { skipped, unverified, others, cut, lines, learntFrom, inForce }: Findings,
  proposal: Proposal,
): object {
  return {
    lines,
    learntFrom,
    inForce,
    skipped: Object.fromEntries(skipped),
    unverified: Object.fromEntries(unverified),
    others: Object.fromEntries(others),
    cut,
    ...proposal,
  };
}
