import { createJournalFile, openJournalFile, readJournalLines, type JournalFile } from '../io/journal-file.js';
import { processMark } from '../io/process-id.js';
import { accept, type Result } from '../../lib/result.js';
import { decodeRecord, encodeRecord, headerDifference, type JournalHeader, type JournalRecord } from '../journal.js';
import type { Ledger } from '../totals.js';
import type { Journal } from '../run.js';

export interface ImportJournal extends Journal {
  readonly close: () => Promise<void>;
}

/** Begins a journal, or goes on with the one that is there. Refuses in words that follow its path. */
export async function openJournal(
  path: string,
  header: JournalHeader,
  ledger: Ledger,
  resumes: boolean,
): Promise<Result<ImportJournal, string>> {
  const opened = resumes ? await resumed(path, header, ledger) : await createJournalFile(path);
  if (!opened.ok) return opened;
  const journal = journalOf(opened.value);
  if (!resumes) journal.append({ type: 'header', header });
  journal.append({ type: 'run', pid: process.pid, mark: processMark(process.pid), atMs: Date.now() });
  const kept = await journal.commit();
  if (kept.ok) return accept(journal);
  await journal.close();
  return kept;
}

/** The records of a journal, oldest first, as far as it was written. */
export async function* journalRecords(path: string): AsyncGenerator<JournalRecord, void, undefined> {
  for await (const line of readJournalLines(path)) {
    const record = decodeRecord(line);
    if (record !== null) yield record;
  }
}

async function resumed(path: string, header: JournalHeader, ledger: Ledger): Promise<Result<JournalFile, string>> {
  let isFirst = true;
  const opened = await openJournalFile(path, (line) => {
    const record = decodeRecord(line);
    if (record === null) return 'is no line of a journal of this version';
    const problem = isFirst ? firstProblem(record, header) : null;
    isFirst = false;
    ledger.take(record);
    return problem ?? runningProblem(record);
  });
  if (!opened.ok) return opened;
  // Nothing was kept before the first crash: there is nothing to go on with.
  if (opened.value.lines === 0) opened.value.file.append(encodeRecord({ type: 'header', header }));
  return accept(opened.value.file);
}

function firstProblem(record: JournalRecord, header: JournalHeader): string | null {
  if (record.type !== 'header') return 'is no first line of a journal';
  const difference = headerDifference(record.header, header);
  return difference === null ? null : `does not fit: ${difference}`;
}

/** Two imports at once would each take the other's users for strangers. */
function runningProblem(record: JournalRecord): string | null {
  if (record.type !== 'run' || record.mark === null || record.pid === process.pid) return null;
  return processMark(record.pid) === record.mark
    ? `is of an import that is still running (process ${String(record.pid)})`
    : null;
}

function journalOf(file: JournalFile): ImportJournal {
  return {
    append: (record) => {
      file.append(encodeRecord(record));
    },
    commit: () => file.commit(),
    close: () => file.close(),
  };
}
