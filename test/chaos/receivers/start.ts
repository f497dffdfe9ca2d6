/** Real receiving services, each with the service of `apps.ts`. */
import { createServer } from 'node:http';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import fastify from 'fastify';
import { listen } from '../../support/listening.js';
import { startPhp } from '../../support/php.js';
import { startPuma } from '../../support/puma.js';
import { startGunicorn, startWaitress } from '../../support/python-web.js';
import type { Scope } from '../../support/scope.js';
import { djangoApp, flaskApp, phpApp, rackApp, wsgiApp } from './apps.js';
import { djangoOnGunicorn } from './django.js';
import type { RealReceiver } from './real-receiver.js';

/** What comes with few packages. */
export const realReceivers: readonly RealReceiver[] = [
  djangoOnGunicorn,
  { name: 'Django on waitress', start: async (t, env) => startWaitress(t, djangoApp, env) },
  { name: 'Flask on gunicorn', start: async (t, env) => startGunicorn(t, flaskApp, env) },
  { name: 'Flask on waitress', start: async (t, env) => startWaitress(t, flaskApp, env) },
  { name: 'WSGI on gunicorn', start: async (t, env) => startGunicorn(t, wsgiApp, env) },
  { name: 'Rack on Puma', start: async (t, env) => startPuma(t, rackApp, env) },
  { name: 'PHP', start: async (t, env) => startPhp(t, phpApp, env) },
  { name: 'Express', start: startExpress },
  { name: 'Fastify', start: startFastify },
];

interface Asked {
  readonly method: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly subject: string;
}

/** What those of Node.js do with a request whose body was read, or is not wanted. */
async function handle(
  { method, query, subject }: Asked,
  ledger: string,
): Promise<{ readonly status: number; readonly body: string }> {
  const id = query['id'] ?? '';
  appendFileSync(ledger, `${method} ${id} ${subject}\n`);
  const delayMs = Number(query['delay'] ?? 0);
  if (delayMs > 0) await sleep(delayMs);
  return {
    status: Number(query['status'] ?? 200),
    body: `${query['q'] ?? ''}|${id}|${subject}|${'x'.repeat(Number(query['size'] ?? 0))}`,
  };
}

function queryOf(url: string): Asked['query'] {
  return Object.fromEntries(new URL(url, 'http://a').searchParams);
}

async function startExpress(t: Scope, { LEDGER }: { readonly LEDGER: string }): Promise<number> {
  const app = express();
  app.use((request, response, next) => {
    const asked = { method: request.method, query: queryOf(request.url), subject: request.get('X-Auth-Subject') ?? '' };
    const answer = async (): Promise<void> => {
      const { status, body } = await handle(asked, LEDGER);
      response.status(status);
      if (asked.query['cut'] === undefined) {
        response.send(body);
        return;
      }
      response.write(body.slice(0, 20), () => {
        response.destroy();
      });
    };
    if (asked.query['leave'] === undefined) {
      request
        .resume()
        .on('end', () => void answer().catch(next))
        .on('error', () => undefined);
    } else void answer().catch(next);
  });
  return (await listen(t, createServer(app))).port;
}

async function startFastify(t: Scope, { LEDGER }: { readonly LEDGER: string }): Promise<number> {
  const app = fastify({ exposeHeadRoutes: true });
  // Bodies are left to the handler, which reads them, or not.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => {
    done(null);
  });
  app.all('/*', async (request, reply) => {
    const query = queryOf(request.url);
    const subject = request.headers['x-auth-subject'];
    if (query['leave'] === undefined) for await (const _chunk of request.raw);
    const { status, body } = await handle(
      { method: request.method, query, subject: typeof subject === 'string' ? subject : '' },
      LEDGER,
    );
    if (query['cut'] === undefined) return reply.code(status).send(body);
    reply.hijack();
    reply.raw.writeHead(status);
    reply.raw.write(body.slice(0, 20), () => {
      reply.raw.destroy();
    });
    return reply;
  });
  await app.ready();
  return (await listen(t, app.server)).port;
}
