import { openToOthers } from '../../lib/secret-file-access.js';
import { stat } from 'node:fs/promises';
import { pathIn, type Folder } from '../../lib/files.js';
import { digestOf, openInput, type InputFile } from '../io/input-file.js';
import { readJsonList } from '../io/json-array.js';
import { readCsv, readJsonLines } from '../io/records.js';
import { readText } from '../../adapters/files/read-file.js';
import { nearestName } from '../../lib/did-you-mean.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { headerProblem, originOfCells, rowOfCells } from '../row/csv.js';
import { parseHashParameters, rowOfFirebaseUser, type HostedHashParameters } from '../row/firebase.js';
import { extraIdentifiers } from '../row/password-hash.js';
import { withOriginalHashes, type ReturnedRecord } from '../row/rejoin-hashes.js';
import { readUnits, type SourceRecord, type Unit } from '../row/rows.js';
import type { HashReading } from '../journal.js';
import { formatOf, hashRulesOf, type Format, type ImportOptions } from './options.js';

/** The input, read from its start as often as asked. */
export interface ImportSource {
  readonly bytes: number;
  readonly format: Format;
  /** What besides the file's bytes and its hashes decides what a row becomes, in words. */
  readonly reading: string;
  readonly hashes: HashReading;
  /** How places in the file are named. */
  readonly place: 'line' | 'user';
  readonly read: () => SourcePass;
  readonly close: () => Promise<void>;
}

interface SourcePass {
  readonly units: AsyncIterable<Unit>;
  /** SHA-256 of the file, hex, once it was read to its end. */
  readonly digest: () => string | null;
}

/** A console shows ten lines. */
const maxParameterBytes = 16 * 1024;

/** Opens all files that hold users. Refuses in a line for people. */
export async function openSource(
  file: string,
  options: ImportOptions,
  folder: Folder,
): Promise<Result<ImportSource, string>> {
  const parameters = options.hashConfig === undefined ? accept(null) : await readParameters(options.hashConfig, folder);
  if (!parameters.ok) return parameters;
  const input = await openInput(pathIn(folder, file));
  if (!input.ok) return refuse(`${file} ${input.error}`);
  const original =
    options.hashesFrom === undefined ? accept(null) : await openInput(pathIn(folder, options.hashesFrom));
  if (!original.ok) {
    await input.value.close();
    return refuse(`${options.hashesFrom ?? ''} ${original.error}`);
  }
  const format = formatOf(file, options.from);
  const place = format === 'firebase' ? 'user' : 'line';
  const hashes = hashRulesOf(options);
  const originalDigest = original.value === null ? accept(null) : await digestOf(original.value);
  if (!originalDigest.ok) {
    await closeAll([input.value, original.value]);
    return refuse(`${options.hashesFrom ?? ''} ${originalDigest.error}`);
  }
  const originalFormat = originalFormatOf(options);
  return accept({
    bytes: input.value.bytes,
    format,
    place,
    reading: [
      ...(parameters.value === null ? [] : [`hash parameters ${Object.values(parameters.value).join(' ')}`]),
      ...(options.hashesFrom === undefined ? [] : [`--hashes-from ${options.hashesFrom}`]),
    ].join(', '),
    hashes: {
      dialect: options.dialect,
      accepted: extraIdentifiers.filter((identifier) => hashes.accepted.has(identifier)),
      stripsPrefix: hashes.stripPrefix,
      original: originalDigest.value,
    },
    read: () => {
      const pass = input.value.read();
      const records = recordsOf(pass.chunks, format, parameters.value);
      const originals =
        original.value === null ? null : recordsOf(original.value.read().chunks, originalFormat, parameters.value);
      const whole = originals === null ? ofThisFile(records) : withOriginalHashes(records, originals);
      return { units: readUnits(whole, { hashes, place }), digest: pass.digest };
    },
    close: () => closeAll([input.value, original.value]),
  });
}

/** An original that is JSON as a whole is an export. */
function originalFormatOf({ hashesFrom = '', hashConfig }: ImportOptions): Format {
  return hashConfig === undefined ? formatOf(hashesFrom, undefined) : 'firebase';
}

async function closeAll(files: readonly (InputFile | null)[]): Promise<void> {
  for (const file of files) await file?.close();
}

async function* recordsOf(
  chunks: AsyncIterable<Buffer>,
  format: Format,
  parameters: HostedHashParameters | null,
): AsyncGenerator<ReturnedRecord, void, undefined> {
  if (format === 'csv') {
    yield* readCsv(chunks, {
      headerProblem: (columns) => headerProblem(columns, nearestName),
      rowOfCells,
      originOfCells,
    });
    return;
  }
  const records = format === 'jsonl' || parameters === null ? readJsonLines(chunks) : exported(chunks, parameters);
  for await (const record of records) yield { ...record, origin: null };
}

/** Their hashes stand in the file itself, so that is where a list of those that come back has to point. */
async function* ofThisFile(records: AsyncIterable<ReturnedRecord>): AsyncGenerator<SourceRecord, void, undefined> {
  for await (const record of records) yield { ...record, origin: null };
}

async function* exported(
  chunks: AsyncIterable<Buffer>,
  parameters: HostedHashParameters,
): AsyncGenerator<SourceRecord, void, undefined> {
  for await (const record of readJsonList(chunks, 'users')) {
    const read = record.content.ok ? rowOfFirebaseUser(record.content.value, parameters) : record.content;
    yield read.ok
      ? { ...record, content: accept(read.value.row), lost: read.value.lost }
      : { ...record, content: read };
  }
}

/** The file holds the signer key beside the parameters, so nobody else may read it. */
async function readParameters(file: string, folder: Folder): Promise<Result<HostedHashParameters, string>> {
  const path = pathIn(folder, file);
  const text = await readText(path, { maxBytes: maxParameterBytes });
  if (!text.ok) return refuse(`${file} ${text.error}`);
  const open = openToOthers((await stat(path)).mode);
  if (open !== null) return refuse(`${file} ${open}: it holds the signer key`);
  const parameters = parseHashParameters(text.value);
  return parameters.ok ? parameters : refuse(`${file} ${parameters.error}`);
}
