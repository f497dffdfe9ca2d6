import { resolve } from 'node:path';
import { Command } from 'commander';
import { configFailure, readConfig } from '../app/config-source.js';
import { startFailure } from '../app/start-failure.js';
import type { CompiledConfig } from '../config/compiled.js';
import { escapeControls, type Problem } from '../config/problems.js';
import { checkFiles } from './doctor-files.js';
import { formatFinding, ok, warning, type Finding } from './doctor-finding.js';
import { checkIssuer } from './doctor-keys.js';
import { checkReceiver } from './doctor-receiver.js';
import { checkSessions } from './doctor-sessions.js';
import { checkStore } from './doctor-store.js';
import type { ExitCode, Io } from './io.js';
import { endOfLifeNotice } from './node-release.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';

interface Options {
  readonly config: string;
  readonly json?: true;
}

/** `sallyport doctor --config FILE`: looks at everything that the proxy needs, and says how to mend what is wrong. */
export function createDoctorCommand(io: Io): Command {
  return new Command('doctor')
    .description('Look at what the config needs: keys of each issuer, clock, receiving service and ways past the proxy, Redis, certificates, file modes.')
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nOne line each, `ok|warning|problem: what; fix: …`.\n'
      + 'Exit code: 0 no problem, 1 a problem, 2 the config cannot be read, 3 something is out of reach.')
    .action((options: Options) => doctor(options, io));
}

async function doctor(options: Options, io: Io): Promise<void> {
  const source = sourceOf(options.config, io);
  const read = await readConfig(source, io.env);
  if (!read.ok) {
    fail(startFailure('unreadable', read.error), io);
    return;
  }
  const { config, problems } = read.value;
  if (config === null) {
    fail(configFailure(source.name, read.value), io);
    return;
  }
  const findings = [...problems.map(configFinding), ...await examine(resolve(io.cwd, options.config), config)];
  if (options.json === true) io.stdout(`${JSON.stringify({ findings })}\n`);
  else for (const finding of findings) io.stdout(`${escapeControls(formatFinding(finding))}\n`);
  io.exit(exitCode(findings));
}

function configFinding({ file, line, column, message, allowed }: Problem): Finding {
  return warning('config', `${file}:${String(line)}:${String(column)}: ${message}`, allowed);
}

async function examine(configFile: string, config: CompiledConfig): Promise<readonly Finding[]> {
  const nowMs = Date.now();
  const notice = endOfLifeNotice(process.versions.node, nowMs);
  const examined = await Promise.all([
    checkFiles(configFile, config, nowMs),
    ...config.issuers.map(checkIssuer),
    checkSessions(config.sessions),
    checkReceiver(config.upstream),
    checkStore(config.store),
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
