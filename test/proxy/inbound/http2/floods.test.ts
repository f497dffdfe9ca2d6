import t from 'tap';
import { codes, flood, http2Floods } from '../../../support/attacks/http2-floods.js';
import { ask, connectHttp2 } from '../../../support/http2-client.js';
import { connectFrames } from '../../../support/http2-frames.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';

t.jobs = http2Floods.length;

for (const attack of http2Floods) {
  t.test(`${attack.name} end the connection, and nobody else's`, async (t) => {
    const proxy = await startProxy(t, { config: { listen: { http2: true } } });
    const authorization = proxy.authorization().Authorization;
    const fields = [
      ':method',
      'GET',
      ':scheme',
      'http',
      ':path',
      '/orders',
      ':authority',
      'a',
      'authorization',
      authorization,
    ];
    const honest = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`);
    const client = await connectFrames(t, proxy.port);
    const attacked = flood(client, attack, fields);
    const attacking = { isOver: false };
    void attacked.then(() => {
      attacking.isOver = true;
    });
    let served = 0;
    do {
      const got = await ask(honest, { ':path': '/orders', authorization });
      if (got.status !== 200) t.equal(got.status, 200);
      served += 1;
    } while (!attacking.isOver);
    const { code, ended } = await attacked;
    t.ok(ended);
    t.ok(served > 0);
    // A GOAWAY may be lost, where the system resets a connection on which something was not read (RFC 9113 §5.4.1).
    if (code === null) t.same(proxy.counted.connectionEndings, ['http2_abuse']);
    else t.ok(attack.endsWith.includes(code), `code ${code}`);
    if (code === codes.enhanceYourCalm) t.ok(proxy.receiver.requests.length - served <= 300, 'few of them got further');
    await until('nothing is held', () => {
      const { inFlight, streams } = proxy.server.counts();
      return inFlight === 0 && streams === 0;
    });
  });
}
