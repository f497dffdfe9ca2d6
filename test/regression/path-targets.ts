/** Targets that lead astray, and how they are asked for. */
import { readCorpusTargets } from '../conformance/corpus-targets.js';
import { pathPieces } from '../fuzz/heads.js';
import { connectRaw, type RawResponse } from '../support/raw-client.js';
import { readVectors } from '../vectors/corpus.js';

/** One part for everybody, one for nobody who is asked here. */
export const publicAndAdmin = [
  { name: 'public', methods: ['GET'], path: '/public/**', access: 'public' },
  { name: 'named', methods: ['GET'], path: '/caf%C3%A9', access: 'public' },
  { name: 'admin', methods: ['GET'], path: ['/admin', '/admin/**'], subjects: ['root'], permissions: [] },
];

/** Ways to write a path below `/public/` so that some reader finds `/admin`: of our own, and of the corpora that are at hand. */
export function hostileTargets(): readonly string[] {
  const pieces = pathPieces.filter(piece => piece.length < 100);
  const crossed = pieces.flatMap(piece => [
    `/public/${piece}/admin/x`, `/public/${piece}${piece}admin/x`, `/public/x/${piece}/${piece}/admin/x`, `/public${piece}/admin`,
    `/public/x${piece}/../admin/x`,
    `/${piece}admin/x`, `/admin${piece}`, `/admin/${piece}`, `/public/%2e%2e${piece}admin`, `/public/..${piece}/admin/x`, `/public/x?${piece}/admin`,
  ]);
  const ours = (readVectors('hostile-targets.json') as string[]).flatMap(target => [target, `/public${target}`, `/public/${target}/admin/x`]);
  return [...new Set([...crossed, ...ours, ...readCorpusTargets('/public/')])].filter(target => /^[\x21-\xff]+$/.test(target));
}

export interface Asked {
  readonly target: string;
  /** `null` where the connection was closed without an answer. */
  readonly answer: RawResponse | null;
}

/** Sends them one after the other, over as few connections as there may be. */
export async function askAll(port: number, targets: readonly string[]): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  let caller = await connectRaw(port);
  for (const target of targets) {
    if (caller.isClosed()) caller = await connectRaw(port);
    caller.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`, 'latin1'));
    const answer = await caller.readResponse();
    asked.push({ target, answer });
    if (answer === null || answer.field('connection') === 'close') {
      caller.end();
      caller = await connectRaw(port);
    }
  }
  caller.end();
  return asked;
}
