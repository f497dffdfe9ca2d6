import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { pathIn } from '../../lib/files.js';
import { createCoreClient, type CoreClient } from '../../core-api/core-client.js';
import { readCurlConfig, type CurlConfigFile } from '../../core-api/curl/curl-config-file.js';
import { UnreadableInput } from '../io/records.js';
import type { SpokenVersions } from '../core/requests.js';
import { carriesIsVerified, chooseVersions } from '../core/versions.js';
import type { JournalHeader } from '../journal.js';
import { createLedger, type Ledger } from '../totals.js';
import { firstVersionOfIsVerified, isVerifiedField } from '../losses.js';
import { runImport } from '../run.js';
import { openJournal, type ImportJournal } from './journal.js';
import { optionProblem, type ImportOptions } from './options.js';
import { planImport, usersText, type PlannedImport } from './plan.js';
import { showProgress } from './progress.js';
import { inputChanged, makeReport, reportText, type ReportFiles } from './report.js';
import { openSource, type ImportSource } from './source.js';
import type { ExitCode, Io } from '../../cli/io.js';
import { failUsage } from '../../cli/options.js';

/** Moves users into the Core; answers with the exit code. */
export async function importFile(file: string, options: ImportOptions, io: Io): Promise<ExitCode> {
  const problem = optionProblem(file, options);
  if (problem !== null) {
    failUsage('import', problem, io);
    return 2;
  }
  const curl = options.curlConfig === undefined ? null : await readCurlConfig(options.curlConfig, io);
  if (curl?.ok === false) return exitWith(curl.error, 2, io);
  const files = filesBeside(pathIn(io, file));
  const hasJournal = existsSync(files.journal);
  if (hasJournal && options.resume !== true && options.dryRun !== true) {
    return exitWith(
      `${files.journal} is the journal of an import of this file: go on with --resume, or remove it to begin again`,
      2,
      io,
    );
  }
  const source = await openSource(file, options, io);
  if (!source.ok) return exitWith(source.error, 2, io);
  try {
    const planned = await planImport(file, source.value, options, io);
    if (planned === null) return 2;
    if (options.dryRun === true || curl === null) return planned.plan.problems === 0 ? 0 : 1;
    return await importPlanned({
      file,
      source: source.value,
      planned,
      curl: curl.value,
      files,
      resumes: hasJournal,
      options,
      io,
    });
  } finally {
    await source.value.close();
  }
}

/** Everything that an import leaves behind stands beside its input. */
function filesBeside(path: string): ReportFiles {
  return {
    journal: `${path}.import-journal`,
    report: `${path}.import-report.json`,
    rejected: `${path}.import-rejected.csv`,
  };
}

interface Import {
  readonly file: string;
  readonly source: ImportSource;
  readonly planned: PlannedImport;
  readonly curl: CurlConfigFile;
  readonly files: ReportFiles;
  readonly resumes: boolean;
  readonly options: ImportOptions;
  readonly io: Io;
}

async function importPlanned(work: Import): Promise<ExitCode> {
  const { curl, options, io } = work;
  const core = createCoreClient({
    baseUrl: curl.url,
    // A file that mints names another recipe and version.
    headers: curl.headers.filter(({ name }) => !['rid', 'cdi-version'].includes(name.toLowerCase())),
    ca: curl.ca,
    rules: { allowHttp: options.allowHttp === true, allowPublic: options.allowPublicCore === true },
    maxConnections: options.concurrency,
    ...(curl.timeoutMs === null ? {} : { timeoutMs: curl.timeoutMs }),
    ...(curl.connectTimeoutMs === null ? {} : { connectTimeoutMs: curl.connectTimeoutMs }),
  });
  try {
    const versions = await chooseVersions(core, {
      asked: options.cdiVersion ?? null,
      giveUpAfterMs: options.giveUpAfter,
      monotonicMs: () => performance.now(),
      wait: (ms) => delay(ms),
    });
    if (!versions.ok) return exitWith(`the Core at ${curl.url} ${versions.error}`, 3, io);
    warnOfVersion(versions.value, work);
    return await importInto(core, versions.value, work);
  } finally {
    await core.close();
  }
}

/** Said before the first call, so that an import can still be stopped. */
function warnOfVersion({ thirdPartyVersion }: SpokenVersions, { planned, curl, options, io }: Import): void {
  const { verified } = planned.plan;
  if (verified === 0 || carriesIsVerified(thirdPartyVersion)) return;
  const why =
    options.cdiVersion === undefined
      ? `the Core at ${curl.url} speaks no version that carries it, from ${firstVersionOfIsVerified} on`
      : `--cdi-version ${thirdPartyVersion} does not carry it`;
  io.stderr(`warning: ${isVerifiedField} of ${usersText(verified)} will be lost: ${why}\n`);
}

async function importInto(core: CoreClient, versions: SpokenVersions, work: Import): Promise<ExitCode> {
  const { source, planned, curl, files, resumes, io } = work;
  const ledger = createLedger();
  const header: JournalHeader = {
    sha256: planned.sha256,
    bytes: source.bytes,
    from: source.format,
    core: curl.url,
    reading: source.reading,
    hashes: source.hashes,
  };
  const journal = await openJournal(files.journal, header, ledger, resumes);
  if (!journal.ok) return exitWith(`${files.journal} ${journal.error}`, 2, io);
  const { done } = ledger.totals();
  if (resumes) io.stderr(`going on after ${String(done)} of ${String(planned.plan.users)}\n`);
  const stopped = await run(core, versions, journal.value, work, ledger);
  await journal.value.close();
  const made = await makeReport(
    { file: work.file, core: curl.url, stopped, total: planned.plan.users },
    source,
    ledger,
    files,
  );
  if (stopped !== null) io.stderr(`stopped: ${stopped}\n`);
  if (!made.ok) return exitWith(made.error, 3, io);
  io.stdout(work.options.json === true ? `${JSON.stringify(made.value)}\n` : reportText(made.value));
  if (stopped !== null) return 3;
  return made.value.complete ? 0 : 1;
}

/**
 * Imports, and returns why it stopped early. The first signal lets those in flight come to their end, the second does
 * not.
 */
async function run(
  core: CoreClient,
  versions: SpokenVersions,
  journal: ImportJournal,
  { source, planned, options, io }: Import,
  ledger: Ledger,
): Promise<string | null> {
  const stopping = new AbortController();
  const display = showProgress(io, planned.plan.users, ledger);
  const stopListening = io.onSignal((signal) => {
    if (stopping.signal.aborted) io.exitNow(3);
    io.stderr(`\n${signal}: waiting for the users in flight; once more ends at once\n`);
    stopping.abort(signal);
  });
  const pass = source.read();
  try {
    const reason = await runImport(
      {
        units: pass.units,
        ledger,
        journal,
        core,
        clock: { now: () => Date.now(), monotonic: () => performance.now() },
        wait: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
        chance: () => Math.random(),
        onTrouble: (why) => display.say(`trying again: ${why}`),
        signal: stopping.signal,
      },
      {
        ...options,
        ...versions,
        overwrite: options.overwrite === true,
        callsPerSecond: options.rate ?? null,
        giveUpAfterMs: options.giveUpAfter,
      },
    );
    if (reason !== null) return reason;
    if (stopping.signal.aborted) return `by ${String(stopping.signal.reason)}; go on with --resume`;
    return pass.digest() === planned.sha256 ? null : inputChanged;
  } catch (error) {
    // Its header was as it should be when the plan was made.
    if (error instanceof UnreadableInput) return inputChanged;
    throw error;
  } finally {
    stopListening();
    display.close();
  }
}

function exitWith(message: string, code: ExitCode, io: Io): ExitCode {
  io.stderr(`error: ${message}\n`);
  return code;
}
