import t from 'tap';
import type { RawResponse } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startReservingProxy } from './reserving-proxy.js';

t.test(
  'writes in overload: one refused before it is reserved leaves no record; one that is reserved runs once, or is free',
  async (t) => {
    const proxy = await startReservingProxy(t, {
      config: { upstream: { max_connections: 2, connect_timeout: '20s' } },
    });
    proxy.receiver.behave((req, res) => {
      req.resume().on('end', () => setTimeout(() => res.writeHead(201).end('made'), 20));
    });
    const asked: Promise<RawResponse>[] = [];
    const ask = (subject: string): void => {
      const name = String(asked.length);
      asked.push(proxy.write({ key: name, claims: { sub: subject }, headers: { 'X-Request-Id': name } }));
    };
    const early = (): typeof proxy.records =>
      proxy.records.filter(({ reason, record }) => reason === 'overloaded' && record === null);
    await until('writes are refused that were not reserved', () => {
      for (let i = 0; i < 10; i += 1) ask(i % 2 === 0 ? 'checkout' : 'migration');
      return early().length > 20;
    });
    const answers = await Promise.all(asked);
    await until('everything to be over', proxy.isIdle);
    const refused = answers.filter(({ text }) => text.includes('urn:sallyport:overloaded'));
    const tooMany = answers.filter(({ status }) => status === 429);
    t.ok(refused.length > 20);
    for (const { status, field } of refused) t.match([status, field('Retry-After')], [503, /^\d+$/]);
    t.equal(
      proxy.store.callsOf('reserve'),
      asked.length - tooMany.length - early().length,
      'the store was asked for no other',
    );
    t.equal(
      proxy.executions().length,
      answers.filter(({ status }) => status === 201).length,
      'and each that was served ran once',
    );

    // Whatever was refused, its key is free.
    const late = proxy.records.filter(({ reason, record }) => reason === 'overloaded' && record !== null);
    for (const { request_id: name, subject } of [...early().slice(0, 3), ...late.slice(0, 3)]) {
      const again = await proxy.write({ key: name, claims: { sub: String(subject) } });
      t.match([again.status, again.field('Idempotent-Replayed')], [201, null]);
    }
  },
);
