import { countProblems, formatProblem, type Note, type Problem } from '../../../config/load/report.js';
import { escapeControls } from '../../../lib/text.js';
import { inspectChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import type { Io } from '../../io.js';
import { readGrpcApi } from '../../grpc/read-api.js';
import { startFailure } from '../../../app/start-failure.js';
import { fail } from '../../options.js';

export interface CheckOptions {
  readonly config?: string;
  readonly strict?: true;
  readonly endMarker?: true;
  readonly proto?: readonly string[];
  readonly json?: true;
}

/** More are counted: what matters is said in the last line. */
const maxNotes = 20;

/** Prints every problem of a config. */
export async function check(options: CheckOptions & ConfigArguments, io: Io): Promise<void> {
  const api = options.proto === undefined ? null : await readGrpcApi(options.proto, io);
  if (api?.ok === false) {
    fail(startFailure('unreadable', api.error), io);
    return;
  }
  const read = await inspectChosen(options, io, {
    endMarkerFor: options.endMarker === true ? '--end-marker' : null,
    grpcApi: api?.value ?? null,
  });
  if (!read.ok) {
    fail(read.error, io);
    return;
  }
  const { name: file, config, problems, notes, excerptOf } = read.value;
  const accepted = config !== null && !(options.strict === true && problems.length > 0);
  if (options.json === true) {
    io.stdout(`${JSON.stringify({ file, ok: accepted, sha256: config?.sha256 ?? null, problems, notes })}\n`);
  } else {
    for (const problem of problems) io.stdout(`${[formatProblem(problem), ...excerptOf(problem)].join('\n')}\n`);
    for (const line of noteLines(file, notes)) io.stderr(`${escapeControls(line)}\n`);
    io.stderr(`${escapeControls(`${file}: ${conclusion(problems, accepted)}`)}\n`);
  }
  io.exit(accepted ? 0 : 1);
}

function noteLines(file: string, notes: readonly Note[]): readonly string[] {
  const shown = notes
    .slice(0, maxNotes)
    .map(({ line, column, message }) => `${file}:${String(line)}:${String(column)}: note: ${message}`);
  return notes.length <= maxNotes
    ? shown
    : [...shown, `${file}: ${String(notes.length - maxNotes)} more notes; --json lists them`];
}

function conclusion(problems: readonly Problem[], accepted: boolean): string {
  const counts = countProblems(problems);
  if (accepted) return counts === '' ? 'ok' : `ok, ${counts}`;
  return problems.some(({ severity }) => severity === 'error') ? counts : `${counts}, which --strict does not accept`;
}
