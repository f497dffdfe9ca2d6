import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import { TLSSocket } from 'node:tls';
import { listen } from './listening.js';
import type { Scope } from './scope.js';

/** One question as it came. */
export interface Question {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly form: URLSearchParams;
  /** Common name of the certificate that was shown. */
  readonly certificate: string | null;
}

type Behaviour = (question: Question, res: ServerResponse) => unknown;

/** An issuer that is asked about tokens, over real sockets. */
export interface IntrospectionServer {
  readonly url: string;
  readonly port: number;
  readonly questions: Question[];
  /** What it says of a token; of others, that they are not active. */
  readonly tokens: Map<string, object>;
  /** Answers in the stead of that; `null` goes back to it. */
  readonly behave: (behaviour: Behaviour | null) => void;
  readonly close: () => Promise<void>;
}

export async function startIntrospection(
  t: Scope,
  { tls, port }: { readonly tls?: ServerOptions; readonly port?: number } = {},
): Promise<IntrospectionServer> {
  const questions: Question[] = [];
  const tokens = new Map<string, object>();
  let behaviour: Behaviour | null = null;
  const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of req) text += String(chunk);
    const shown = req.socket instanceof TLSSocket ? req.socket.getPeerCertificate() : null;
    const question: Question = {
      path: req.url ?? '',
      headers: req.headers,
      form: new URLSearchParams(text),
      certificate: shown !== null && 'subject' in shown ? String(shown.subject.CN) : null,
    };
    questions.push(question);
    if (behaviour === null) sayJson(res, tokens.get(question.form.get('token') ?? '') ?? { active: false });
    else behaviour(question, res);
  };
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    answer(req, res).catch(() => res.destroy());
  };
  const server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  const opened = await listen(t, server, port);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${String(opened.port)}/introspect`,
    port: opened.port,
    questions,
    tokens,
    behave: (next) => {
      behaviour = next;
    },
    close: opened.close,
  };
}

export function sayJson(res: ServerResponse, body: unknown, type = 'application/json'): void {
  res.writeHead(200, { 'content-type': type });
  res.end(typeof body === 'string' ? body : JSON.stringify(body));
}
