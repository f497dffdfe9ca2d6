/** An issuer that is asked over a socket, and answers byte for byte what it was told to. */
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import type { Field } from '../model-fields.js';
import type { PolicyIntrospection } from '../model-policy.js';
import type { Answer } from './model-answers.js';

/** An answer, and how it goes over the wire. */
export interface Script extends Answer {
  readonly pieces: readonly Buffer[];
  /** What becomes of the connection behind it. `hang`: nothing more comes. */
  readonly end: 'keep' | 'close' | 'reset' | 'hang';
}

/** An issuer that is asked, and whatever went wrong with how it was. */
export interface QuestionedIssuer {
  readonly url: string;
  /** What is said of a token from now on. */
  readonly scripts: Map<string, Script>;
  /** Tokens that were asked about, in order. */
  readonly questions: string[];
  /** What no question may be. */
  readonly faults: string[];
  /** Milliseconds for which each answer waits. */
  delayMs: number;
  /** How it knows who asks, by the path of its address. */
  readonly clients: Map<string, PolicyIntrospection>;
}

/** What clients prove themselves by. */
export const clientSecret = 'a secret: with + and % and é';

export async function startAskedIssuer(t: Scope, tls: TlsOptions | null = null): Promise<QuestionedIssuer> {
  const underWay = new Set<string>();
  const serve = (socket: Socket): void => {
    let received: Buffer = Buffer.alloc(0);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      for (let question = readQuestion(received); question !== null; question = readQuestion(received)) {
        received = question.rest;
        answer(question, socket);
      }
    });
  };
  const answer = (question: Question, socket: Socket): void => {
    const token = question.form.get('token') ?? '';
    issuer.questions.push(token);
    const problem = problemOf(question, issuer.clients.get(question.path));
    if (problem !== null) issuer.faults.push(`${problem}: ${question.text}`);
    if (underWay.has(token)) issuer.faults.push(`two questions about ${token} at once`);
    underWay.add(token);
    const script = issuer.scripts.get(token);
    const say = async (): Promise<void> => {
      underWay.delete(token);
      for (const piece of script?.pieces ?? []) {
        socket.write(piece);
        await new Promise(setImmediate);
      }
      if (script?.end === 'reset') socket.resetAndDestroy();
      else if (script === undefined || script.end === 'close') socket.end();
    };
    if (issuer.delayMs === 0) void say();
    else setTimeout(() => void say(), issuer.delayMs);
  };
  const server = tls === null ? createServer(serve) : createTlsServer(tls, serve);
  const { port } = await listen(t, server);
  const issuer: QuestionedIssuer = {
    url: `${tls === null ? 'http' : 'https'}://127.0.0.1:${String(port)}`,
    scripts: new Map(),
    questions: [],
    faults: [],
    delayMs: 0,
    clients: new Map(),
  };
  return issuer;
}

interface Question {
  readonly line: string;
  readonly path: string;
  readonly fields: readonly Field[];
  readonly form: URLSearchParams;
  readonly text: string;
  readonly rest: Buffer;
}

/** A whole request at the beginning of these bytes; `null` where it has not come yet. */
function readQuestion(bytes: Buffer): Question | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [line = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const fields = lines.map((text): Field => {
    const at = text.indexOf(':');
    return [text.slice(0, at).toLowerCase(), text.slice(at + 1).trim()];
  });
  const length = Number(fields.find(([name]) => name === 'content-length')?.[1] ?? 0);
  const body = bytes.subarray(end + 4, end + 4 + length);
  if (body.length < length) return null;
  return {
    line,
    path: line.split(' ')[1] ?? '',
    fields,
    form: new URLSearchParams(body.toString()),
    text: `${line} ${JSON.stringify(fields)} ${body.toString()}`,
    rest: bytes.subarray(end + 4 + length),
  };
}

/** RFC 7662 §2.1, RFC 6749 §2.3.1: what is wrong with a question. */
function problemOf({ line, fields, form }: Question, client: PolicyIntrospection | undefined): string | null {
  const valueOf = (name: string): string | undefined => fields.find(([known]) => known === name)?.[1];
  if (client === undefined) return 'nobody is to be asked there';
  if (!line.startsWith('POST ') || valueOf('content-type') !== 'application/x-www-form-urlencoded') {
    return 'no question';
  }
  const wanted = client.answer === 'jwt' ? 'application/token-introspection+jwt' : 'application/json';
  if (valueOf('accept') !== wanted) return 'another answer is asked for';
  const isInBody = client.client_auth === 'client_secret_post';
  const names = ['token', 'token_type_hint', ...(isInBody ? ['client_id', 'client_secret'] : [])];
  if ([...form.keys()].sort().join() !== names.sort().join()) return 'other parameters';
  const shown = isInBody ? [form.get('client_id'), form.get('client_secret')] : basicOf(valueOf('authorization'));
  const isKnown = shown[0] === client.client_id && shown[1] === clientSecret;
  if (!isKnown || (isInBody && valueOf('authorization') !== undefined)) return 'it does not show who asks';
  return form.get('token_type_hint') === 'access_token' ? null : 'another hint';
}

/** Both are encoded as forms are before they are joined. */
function basicOf(authorization = ''): readonly (string | null)[] {
  const [id, secret, ...more] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
    .toString()
    .split(':');
  if (id === undefined || secret === undefined || more.length > 0) return [];
  const form = new URLSearchParams(`id=${id}&secret=${secret}`);
  return [form.get('id'), form.get('secret')];
}
