import { escapeControls } from '../../../lib/text.js';
import { memoryWarning } from '../../../config/sections/store.js';

interface Destination {
  readonly write: (line: string) => void;
}

/** Takes the proxy's log and writes for people: one short line for each request, and whatever is a warning or worse. */
export function devLog(write: (text: string) => void): Destination {
  return {
    write: (line) => {
      const fields = parse(line);
      const text = fields === null ? null : 'request_id' in fields ? requestLine(fields) : eventLine(fields);
      if (text !== null) write(`${escapeControls(text)}\n`);
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

function requestLine({ status, method, path, route, subject, decision, reason }: Fields): string {
  const caller = subject === null ? [] : ['by', subject];
  const why = reason === null ? [] : [reason];
  return [status, method, path, route, ...caller, decision, ...why].map(word).join(' ');
}

function eventLine({ level, msg, time: _time, ...rest }: Fields): string | null {
  // The store is dev's own, and this is development.
  if (String(rest['warning']).includes(memoryWarning)) return null;
  return level === 'warn' || level === 'error' ? `${level}: ${word(msg)} ${JSON.stringify(rest)}` : null;
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parse(line: string): Fields | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
