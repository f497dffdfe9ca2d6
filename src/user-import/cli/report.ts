import { UnreadableInput } from '../io/records.js';
import { writeReport } from '../io/report-file.js';
import { escapeControls } from '../../lib/text.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { talliedKinds, type Ledger, type Tally, type Totals } from '../totals.js';
import type { Loss } from '../losses.js';
import { isNotIn, rejectedHeader, rejectedLine, settledRows, type SettledRow } from '../rejected-rows.js';
import { usersText } from './plan.js';
import type { ImportSource } from './source.js';
import { journalRecords } from './journal.js';

/** What became of an import, as its JSON report has it. */
interface ImportReport {
  readonly file: string;
  readonly core: string;
  /** Why the run ended before the file did; `null` where it did not. */
  readonly stopped: string | null;
  readonly total: number;
  readonly created: number;
  readonly existed: number;
  readonly rejected: number;
  /** Users that no run has finished yet. */
  readonly left: number;
  /** Whether the Core has every row. */
  readonly complete: boolean;
  readonly byKind: Readonly<Record<string, Tally>>;
  /** Users that are in, and lack of what their rows say what this names. */
  readonly notCarried: Readonly<Record<string, Loss>>;
  /** The first rows that were rejected or existed already. */
  readonly rows: readonly ReportedRow[];
  /** How many more there are of these. */
  readonly rowsLeftOut: number;
  /** The rows that are not in, all of them, as CSV; `null` where there are none. */
  readonly rejectedFile: string | null;
}

interface ReportedRow {
  readonly line: number;
  readonly record: number;
  readonly method: number | null;
  readonly result: 'existed' | 'rejected';
  readonly why: string;
}

/** Rows in the JSON report, and on a terminal. The CSV has them all. */
const maxRows = 1_000;
const maxShownRows = 20;

/** Whoever writes to the input meanwhile takes the ground from under all numbers of the journal. */
export const inputChanged = 'the input changed while it was read; make sure that nobody writes to it and begin again';

interface Finished {
  readonly file: string;
  readonly core: string;
  readonly stopped: string | null;
  readonly total: number;
}

export interface ReportFiles {
  readonly journal: string;
  readonly report: string;
  readonly rejected: string;
}

/** Makes the report, and writes it and the rows that are not in beside the input. Refuses where that cannot be done. */
export async function makeReport(
  { file, core, stopped, total }: Finished,
  source: ImportSource,
  ledger: Ledger,
  files: ReportFiles,
): Promise<Result<ImportReport, string>> {
  const totals = ledger.totals();
  const rows: ReportedRow[] = [];
  let settled = 0;
  async function* lines(): AsyncGenerator<string, void, undefined> {
    yield rejectedHeader;
    for await (const row of settledRows(source.read().units, journalRecords(files.journal))) {
      settled += 1;
      if (rows.length < maxRows) rows.push(reported(row));
      if (isNotIn(row)) yield rejectedLine(row);
    }
  }
  if (totals.existed + totals.rejected > 0) {
    const written = await writeReport(files.rejected, lines()).catch((error: unknown) => {
      if (error instanceof UnreadableInput) return refuse(`cannot be written: ${inputChanged}`);
      throw error;
    });
    if (!written.ok) return refuse(`${files.rejected} ${written.error}`);
  }
  const { created, existed, rejected, done, notIn } = totals;
  const report: ImportReport = {
    file,
    core,
    stopped,
    total,
    created,
    existed,
    rejected,
    left: total - done,
    complete: stopped === null && done === total && notIn === 0,
    byKind: kindsOf(totals),
    notCarried: Object.fromEntries(totals.lost),
    rows,
    rowsLeftOut: settled - rows.length,
    rejectedFile: notIn > 0 ? files.rejected : null,
  };
  const written = await writeReport(files.report, [`${JSON.stringify(report, null, 2)}\n`]);
  return written.ok ? accept(report) : refuse(`${files.report} ${written.error}`);
}

/** The report for people. */
export function reportText(report: ImportReport): string {
  const row = (name: string, { created, existed, rejected }: Tally): string =>
    [name.padEnd(14), ...[created, existed, rejected].map((count) => String(count).padStart(9))].join(' ');
  const rows = Object.entries(report.byKind).map(([kind, tally]) => row(kind, tally));
  const shown = report.rows
    .slice(0, maxShownRows)
    .map((entry) => escapeControls(`${report.file}:${placeOf(entry)}: ${entry.result}: ${entry.why}`));
  const more = report.rows.length - shown.length + report.rowsLeftOut;
  return [
    'kind             created   existed  rejected',
    ...rows,
    row('all', report),
    ...(report.left > 0 ? [`${String(report.left)} of ${String(report.total)} are left`] : []),
    ...Object.entries(report.notCarried).map(
      ([field, { users }]) => `warning: ${escapeControls(field)} of ${usersText(users)} was not carried`,
    ),
    ...(shown.length > 0 ? ['', ...shown] : []),
    ...(more > 0 ? [`and ${String(more)} more`] : []),
    ...(report.rejectedFile === null ? [] : ['', `rows that are not in, to mend and import: ${report.rejectedFile}`]),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

function placeOf({ line, method }: ReportedRow): string {
  return method === null ? String(line) : `${String(line)}: user ${String(method)}`;
}

function reported({ unit, outcome }: SettledRow): ReportedRow {
  return {
    line: unit.line,
    record: unit.record,
    method: unit.method === 0 ? null : unit.method,
    result: outcome.result,
    why: outcome.why,
  };
}

function kindsOf({ byKind }: Totals): Readonly<Record<string, Tally>> {
  return Object.fromEntries(
    talliedKinds.flatMap((kind) => {
      const tally = byKind.get(kind);
      return tally === undefined ? [] : [[kind, tally] as const];
    }),
  );
}
