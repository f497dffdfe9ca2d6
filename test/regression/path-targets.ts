/** Targets that lead astray, and how they are asked for. */
import { readCorpusTargets } from '../conformance/corpus-targets.js';
import { pathPieces } from '../support/attacks/targets.js';
import { connectRaw, type RawResponse } from '../support/raw-client.js';
import { readVectors } from '../vectors/corpus.js';

/** One part for everybody, one for nobody who is asked here. */
export const publicAndAdmin = [
  { name: 'public', methods: ['GET'], path: '/public/**', access: 'public' },
  { name: 'named', methods: ['GET'], path: '/caf%C3%A9', access: 'public' },
  { name: 'admin', methods: ['GET'], path: ['/admin', '/admin/**'], subjects: ['root'], permissions: [] },
];

/**
 * Ways to write a path below `/public/` so that some reader finds `/admin`: of our own, and of the corpora that are at
 * hand.
 */
export function hostileTargets(): readonly string[] {
  const pieces = pathPieces.filter((piece) => piece.length < 100);
  const crossed = pieces.flatMap((piece) => [
    `/public/${piece}/admin/x`,
    `/public/${piece}${piece}admin/x`,
    `/public/x/${piece}/${piece}/admin/x`,
    `/public${piece}/admin`,
    `/public/x${piece}/../admin/x`,
    `/${piece}admin/x`,
    `/admin${piece}`,
    `/admin/${piece}`,
    `/public/%2e%2e${piece}admin`,
    `/public/..${piece}/admin/x`,
    `/public/x?${piece}/admin`,
  ]);
  const ours = (readVectors('hostile-targets.json') as string[]).flatMap((target) => [
    target,
    `/public${target}`,
    `/public/${target}/admin/x`,
  ]);
  return [...new Set([...crossed, ...ours, ...readCorpusTargets('/public/')])].filter((target) =>
    /^[\x21-\xff]+$/.test(target),
  );
}

export interface Asked {
  readonly target: string;
  /** `null` where the connection was closed without an answer. */
  readonly answer: RawResponse | null;
}

/** Lines of callers side by side: what one waits for keeps nobody busy. */
const lanes = 4;

/** Sends them all, over as few connections as there may be. */
export async function askAll(port: number, targets: readonly string[]): Promise<readonly Asked[]> {
  const shares = Array.from({ length: lanes }, (_, lane) => targets.filter((_target, index) => index % lanes === lane));
  return (await Promise.all(shares.map(async (share) => askInTurn(port, share)))).flat();
}

async function askInTurn(port: number, targets: readonly string[]): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  let caller = await connectRaw(port);
  for (const target of targets) {
    const ask = async (): Promise<RawResponse | null> => {
      if (caller.isClosed()) caller = await connectRaw(port);
      caller.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`, 'latin1'));
      return caller.readResponse();
    };
    // A server of HTTP/1.0 closes after each answer, without a word and perhaps a moment later.
    const answer = (await ask()) ?? (await ask());
    asked.push({ target, answer });
    if (answer === null || answer.field('connection') === 'close') {
      caller.end();
      caller = await connectRaw(port);
    }
  }
  caller.end();
  return asked;
}
