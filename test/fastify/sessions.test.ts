/** Sessions of users in an application: what else of the process they leave alone, and what browsers may read. */
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import cors from '@fastify/cors';
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { valuesOf } from '../../src/decision/http/header-values.js';
import { rsaKey } from '../support/keys.js';
import { listen } from '../support/listening.js';
import { goodSession, startSessionCore } from '../support/session-core.js';
import { mintSession } from '../support/sessions.js';
import { openApp, type OpenApp } from './open-app.js';
import { createGate } from './writes-app.js';

const key = rsaKey();
// One for all: the SDK is one for the process.
const core = await startSessionCore(t, { keys: [key] });
const unconfirmed = (): string => mintSession({ key, claims: { parentRefreshTokenHash1: 'cd'.repeat(32) } });
const users = { accept: ['session' as const], session: { claims: { tId: 'public' } } };

async function openWithSessions(
  t: Parameters<typeof openApp>[0],
  routes: (app: FastifyInstance) => unknown,
  before: (app: FastifyInstance) => unknown = () => undefined,
): Promise<OpenApp> {
  return openApp(t, {
    config: {
      sessions: { core_url: core.url, api_domain: 'https://api.example.com' },
      store: { memory: {} },
      routes: undefined,
    },
    before,
    routes,
  });
}

t.test("the application's own fetch goes its own way, while it runs and when it closes", async (t) => {
  const gate = createGate();
  const other = await listen(
    t,
    createServer((req, res) => {
      if (req.url === '/slow') void gate.passed.then(() => res.end('late'));
      else res.end('reached');
    }),
  );
  const before = getGlobalDispatcher();
  const own = new Agent().compose(
    (dispatch) => (options, handler) =>
      dispatch({ ...options, origin: `http://127.0.0.1:${String(other.port)}` }, handler),
  );
  setGlobalDispatcher(own);
  t.teardown(() => setGlobalDispatcher(before));
  const { app, request } = await openWithSessions(t, (app) => {
    app.get('/me', { config: { sallyport: users } }, async () => (await fetch('http://nowhere.invalid/')).text());
  });
  core.verify(goodSession());
  const asked = core.asked.length;
  const answer = await request({ path: '/me', headers: { Authorization: `Bearer ${unconfirmed()}` } });
  t.equal(answer.status, 200, answer.text);
  t.equal(answer.text, 'reached', 'by the dispatcher that the application has set');
  t.equal(core.asked.length, asked + 1, 'and the Core not by that one');
  const slow = fetch('http://nowhere.invalid/slow');
  await delay(20);
  await app.close();
  t.equal(getGlobalDispatcher(), own);
  gate.open();
  t.equal(await (await slow).text(), 'late', 'what is under way is not broken off');
});

t.test('what browsers may read besides a renewed session stays, on replays too', async (t) => {
  const writes = { config: { sallyport: { ...users, idempotency: 'required' as const } } };
  const { request } = await openWithSessions(
    t,
    (app) => {
      app.addHook('onRequest', (_request, reply, done) => {
        void reply.header('Set-Cookie', 'seen=1');
        done();
      });
      app.get('/me', { config: { sallyport: users } }, () => ({}));
      app.get('/own', { config: { sallyport: users } }, (_request, reply) =>
        reply.header('Access-Control-Expose-Headers', ['X-Page', 'Front-Token']).send({}),
      );
      app.post('/orders', writes, () => ({ id: 7 }));
    },
    (app) => app.register(cors, { origin: ['https://shop.example.com'], exposedHeaders: ['X-Total', 'Front-Token'] }),
  );
  const renewed = mintSession({ key, claims: { more: 'new' } });
  core.verify({
    ...goodSession(),
    accessToken: { token: renewed, expiry: Date.now() + 60_000, createdTime: Date.now() },
  });
  const rows: readonly (readonly [string, string, RegExp])[] = [
    ['GET', '/me', /^X-Total, *Front-Token, *st-access-token$/],
    ['GET', '/own', /^X-Page, *Front-Token, *st-access-token$/],
    ['POST', '/orders', /^X-Total, *Front-Token, *st-access-token$/],
    ['POST', '/orders', /^X-Total, *Front-Token, *st-access-token$/],
  ];
  for (const [method, path, expected] of rows) {
    const answer = await request({
      method,
      path,
      headers: {
        Authorization: `Bearer ${unconfirmed()}`,
        Origin: 'https://shop.example.com',
        ...(method === 'POST' ? { 'Idempotency-Key': 'k', 'Content-Type': 'application/json' } : {}),
      },
      ...(method === 'POST' ? { body: '{}' } : {}),
    });
    t.equal(answer.status, 200, answer.text);
    t.same(valuesOf(answer.fields.flat(), 'st-access-token'), [renewed]);
    const exposed = valuesOf(answer.fields.flat(), 'access-control-expose-headers');
    t.equal(exposed.length, 1, path);
    t.match(exposed[0], expected, `${method} ${path}`);
    t.same(valuesOf(answer.fields.flat(), 'set-cookie'), ['seen=1'], `${method} ${path}`);
    t.equal(answer.field('access-control-allow-origin'), 'https://shop.example.com');
  }
  const byCookie = await request({
    method: 'POST',
    path: '/orders',
    headers: {
      Cookie: `sAccessToken=${unconfirmed()}`,
      rid: 'session',
      'Idempotency-Key': 'k',
      'Content-Type': 'application/json',
    },
    body: '{}',
  });
  t.equal(byCookie.field('idempotent-replayed'), 'true');
  t.match(valuesOf(byCookie.fields.flat(), 'set-cookie'), ['seen=1', /^sAccessToken=/]);
});
