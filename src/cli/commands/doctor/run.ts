import { configFailure } from '../../../app/config/read-config.js';
import type { CompiledConfig } from '../../../config/types.js';
import type { Problem } from '../../../config/load/report.js';
import { escapeControls } from '../../../lib/text.js';
import { inspectChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import { checkBinding } from './binding.js';
import { checkEgress } from './egress.js';
import { checkFiles } from './files.js';
import { checkFronts } from './fronts/fronts.js';
import { findingAsData, formatFinding, ok, warning, type Finding } from './finding.js';
import { checkIssuer } from './keys.js';
import { checkIntrospection } from './introspection.js';
import { checkUpstream } from './upstream.js';
import { checkSessions } from './sessions.js';
import { checkStore } from './store.js';
import { checkTelemetry } from './telemetry.js';
import type { ExitCode, Io } from '../../io.js';
import { endOfLifeNotice } from '../../node-eol.js';
import { fail } from '../../options.js';

export interface DoctorOptions {
  readonly config?: string;
  readonly json?: true;
  readonly front?: string;
}

/** Prints what was found of everything that the proxy needs, and how to mend what is wrong. */
export async function doctor(options: DoctorOptions & ConfigArguments, io: Io): Promise<void> {
  const read = await inspectChosen(options, io);
  if (!read.ok) {
    fail(read.error, io);
    return;
  }
  const { name, config, problems, path } = read.value;
  if (config === null) {
    fail(configFailure(name, read.value), io);
    return;
  }
  const findings = [...problems.map(configFinding), ...(await examine(path, config, options.front ?? null, io.env))];
  if (options.json === true) io.stdout(`${JSON.stringify({ findings: findings.map(findingAsData) })}\n`);
  else for (const finding of findings) io.stdout(`${escapeControls(formatFinding(finding))}\n`);
  io.exit(exitCode(findings));
}

/** What would be right is no order to follow: that says where to make it so. */
function configFinding({ file, line, column, message, allowed }: Problem): Finding {
  return warning(
    'config',
    `${file}:${String(line)}:${String(column)}: ${message}`,
    `change line ${String(line)}; allowed: ${allowed}`,
  );
}

async function examine(
  configFile: string | null,
  config: CompiledConfig,
  front: string | null,
  env: Io['env'],
): Promise<readonly Finding[]> {
  const nowMs = Date.now();
  const notice = endOfLifeNotice(process.versions.node, nowMs, env);
  const examined = await Promise.all([
    checkFiles(configFile, config, nowMs),
    ...config.issuers.map(async (issuer) => checkIssuer(issuer, config.listen.dpop)),
    ...config.issuers.map(checkIntrospection),
    checkBinding(config),
    checkSessions(config.sessions),
    config.servesCallers ? checkUpstream(config.upstream) : [],
    checkEgress(config.egress),
    checkFronts(config, front),
    checkStore(config.store),
    checkTelemetry(config.telemetry, env),
  ]);
  return [
    notice === null ? ok('node', process.versions.node) : warning('node', notice, 'run on Node.js 24'),
    ...examined.flat(),
  ];
}

function exitCode(findings: readonly Finding[]): ExitCode {
  const problems = findings.filter(({ level }) => level === 'problem');
  if (problems.length === 0) return 0;
  return problems.every(({ outOfReach }) => outOfReach) ? 3 : 1;
}
