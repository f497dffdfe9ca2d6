/** Receivers as they are found in the field, each telling what it took a target for. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, relative } from 'node:path';
import express from 'express';
import { listen } from '../support/listening.js';
import { startPython } from '../support/python.js';
import type { RawResponse } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

export interface RealReceiver {
  readonly name: string;
  readonly port: number;
  /** The segments that its routes, files or programs were found by; `null` where it refused to read them. */
  readonly segmentsOf: (answer: RawResponse) => readonly string[] | null;
  /** Whether it finds the same by a path with and without a last slash. */
  readonly foldsLastSlash: boolean;
}

/** What the answer holds wherever a receiver was led to what is not for everybody. */
export const secret = 'for administrators';

/** All of them, ready. */
export async function startRealReceivers(t: Scope): Promise<readonly RealReceiver[]> {
  const root = tempDir(t);
  for (const folder of ['public', 'admin']) mkdirSync(join(root, folder));
  writeFileSync(join(root, 'public', 'x'), 'for everybody');
  writeFileSync(join(root, 'admin', 'x'), secret);
  const python = await startPython(t, root);
  return [
    await startExpress(t, root),
    { name: 'wsgiref', port: python.wsgi, segmentsOf: wsgiSegments, foldsLastSlash: false },
    { name: 'files of http.server', port: python.files, segmentsOf: fileSegments, foldsLastSlash: true },
  ];
}

/** Files first, then routes, all as its defaults have it: neither case nor a last slash counts. */
async function startExpress(t: Scope, root: string): Promise<RealReceiver> {
  const app = express();
  app.use(
    express.static(root, {
      redirect: false,
      setHeaders: (response, path) => void response.setHeader('X-File', encodeURI(relative(root, path))),
    }),
  );
  app.get(['/admin', '/admin/*rest'], (_request, response) => void response.send(secret));
  app.get('/{*rest}', (request, response) => void response.json({ segments: request.params['rest'] ?? [''] }));
  const { port } = await listen(t, createServer(app));
  return { name: 'express', port, segmentsOf: expressSegments, foldsLastSlash: false };
}

function expressSegments(answer: RawResponse): readonly string[] | null {
  if (answer.field('x-file') !== null) return fileSegments(answer);
  return answer.status === 200 && answer.text.startsWith('{')
    ? (JSON.parse(answer.text) as { segments: readonly string[] }).segments
    : null;
}

/** PEP 3333: bytes, each as the character of its number. */
function wsgiSegments({ status, text }: RawResponse): readonly string[] | null {
  if (status !== 200) return null;
  const { path } = JSON.parse(text) as { path: string };
  return Buffer.from(path, 'latin1').toString('utf8').split('/').slice(1);
}

function fileSegments(answer: RawResponse): readonly string[] | null {
  const file = answer.field('x-file');
  if (file === null) return null;
  return file === '.' ? [''] : file.split('/').map(decodeURIComponent);
}
