/** The members of one list within a large JSON file, such as `users` of a Firebase export, one at a time. */
import { refuse } from '../../lib/result.js';
import type { SourceRecord } from '../row/rows.js';
import { jsonOf, maxRecordBytes, tooLong } from './records.js';

const code = (character: string): number => character.charCodeAt(0);
const [quote, backslash, comma, lineFeed] = [code('"'), code('\\'), code(','), code('\n')];
const opening = new Set([code('{'), code('[')]);
const closing = new Set([code('}'), code(']')]);
const blank = new Set([code(' '), code('\t'), code('\r'), lineFeed]);

/** Depth of the list's members: the object is 1, its list 2. */
const listDepth = 2;

interface Scan {
  depth: number;
  inString: boolean;
  escaped: boolean;
  line: number;
  /** The text of the last string directly within the object: the name of the list when that begins. */
  name: number[];
  inList: boolean;
  sawList: boolean;
  /** Bytes of the member under way; `null` between members. */
  member: number[] | null;
  memberBytes: number;
  memberLine: number;
  record: number;
}

/**
 * Reads the objects of the list with this name, which the file's one object holds. What is around them is passed over.
 */
export async function* readJsonList(
  chunks: AsyncIterable<Buffer>,
  listName: string,
): AsyncGenerator<SourceRecord, void, undefined> {
  const scan: Scan = {
    depth: 0,
    inString: false,
    escaped: false,
    line: 1,
    name: [],
    inList: false,
    sawList: false,
    member: null,
    memberBytes: 0,
    memberLine: 1,
    record: 0,
  };
  for await (const chunk of chunks) {
    for (const byte of chunk) {
      const ended = step(scan, byte, listName);
      if (ended !== null) yield ended;
      if (byte === lineFeed) scan.line += 1;
    }
  }
  const allowed = `a whole file {"${listName}":[…]} as firebase auth:export --format=json writes it`;
  const at = { line: scan.line, record: scan.record + 1 };
  if (scan.depth > 0) yield { ...at, content: refuse({ field: 'file', what: 'ends before its end', allowed }) };
  else if (!scan.sawList) yield { ...at, content: refuse({ field: 'file', what: `has no list ${listName}`, allowed }) };
}

/** Takes one byte; returns the member that it ends. */
function step(scan: Scan, byte: number, listName: string): SourceRecord | null {
  const between = scan.inList && scan.depth === listDepth && !scan.inString;
  if (between && scan.member === null && !blank.has(byte) && byte !== comma && !closing.has(byte)) beginMember(scan);
  const endsHere = between && scan.member !== null && (byte === comma || closing.has(byte));
  const ended = endsHere ? endMember(scan) : null;
  if (scan.member !== null) keep(scan, byte);
  if (scan.inString) {
    inString(scan, byte);
    return ended;
  }
  if (byte === quote) beginString(scan);
  else if (opening.has(byte)) open(scan, listName);
  else if (closing.has(byte)) {
    if (scan.depth === listDepth) scan.inList = false;
    scan.depth -= 1;
  }
  return ended;
}

function beginString(scan: Scan): void {
  scan.inString = true;
  if (scan.depth === 1) scan.name = [];
}

function inString(scan: Scan, byte: number): void {
  if (scan.escaped) scan.escaped = false;
  else if (byte === backslash) scan.escaped = true;
  else if (byte === quote) scan.inString = false;
  if (scan.inString && scan.depth === 1 && scan.name.length < 64) scan.name.push(byte);
}

function open(scan: Scan, listName: string): void {
  scan.depth += 1;
  if (scan.depth !== listDepth || Buffer.from(scan.name).toString('utf8') !== listName) return;
  scan.inList = true;
  scan.sawList = true;
}

function beginMember(scan: Scan): void {
  scan.member = [];
  scan.memberBytes = 0;
  scan.memberLine = scan.line;
  scan.record += 1;
}

function keep(scan: Scan, byte: number): void {
  scan.memberBytes += 1;
  if (scan.memberBytes <= maxRecordBytes) scan.member?.push(byte);
}

function endMember(scan: Scan): SourceRecord {
  const bytes = Buffer.from(scan.member ?? []);
  scan.member = null;
  const at = { line: scan.memberLine, record: scan.record };
  return { ...at, content: scan.memberBytes > maxRecordBytes ? refuse(tooLong) : jsonOf(bytes) };
}
