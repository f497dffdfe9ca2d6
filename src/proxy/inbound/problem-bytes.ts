import { STATUS_CODES } from 'node:http';
import type { Problem } from '../../decision/http/problem-details.js';

/** A whole answer that closes its connection, for callers of whom Node made no request. */
export function problemBytes({ status, fields, body }: Problem, now: Date): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\nDate: ${now.toUTCString()}\r\nConnection: close\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) head += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
