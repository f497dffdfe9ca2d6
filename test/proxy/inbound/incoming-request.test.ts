import { createServer, type ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { CallerRequest } from '../../../src/proxy/inbound/incoming-request.js';
import { listen } from '../../support/listening.js';
import { sendRaw } from '../../support/raw-client.js';

/** Two requests on one connection: what became of the first when the second was answered, and its answer. */
async function afterNext(
  t: Test,
  first: string,
  serve: (req: CallerRequest, res: ServerResponse) => void,
): Promise<{ readonly first: CallerRequest; readonly told: string[] }> {
  const told: string[] = [];
  const requests: CallerRequest[] = [];
  const server = createServer({ IncomingMessage: CallerRequest }, (req, res) => {
    requests.push(req);
    if (requests.length > 1) {
      res.end('second');
      return;
    }
    for (const event of ['end', 'close'] as const) req.on(event, () => told.push(event));
    serve(req, res);
  });
  const { port } = await listen(t, server);
  const answers = await sendRaw(port, `${first}GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, {
    untilClosed: true,
  });
  t.same(
    answers.map(({ status, text }) => [status, text]),
    [
      [200, 'first'],
      [200, 'second'],
    ],
  );
  const [request] = requests;
  if (request === undefined) throw new Error('no request came');
  return { first: request, told };
}

t.test('a request without a body is over with its head: nothing flows, and Node lets go of it', async (t) => {
  for (const fields of ['', 'Content-Length: 0\r\n']) {
    const { first, told } = await afterNext(t, `GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`, (req, res) => {
      t.notOk(req.comesWithBody());
      // The frame is shown another one.
      req.headers = { 'content-length': '5' };
      res.end('first');
    });
    t.same(told, []);
    t.ok(first.complete);
    t.ok(first.readableEnded);
  }
});

t.test('Node has no request of an idle connection that it would keep in memory', async (t) => {
  let held: unknown = 'not asked';
  const server = createServer({ IncomingMessage: CallerRequest }, (req, res) => {
    if (!(req instanceof CallerRequest)) throw new Error('another class');
    req.comesWithBody();
    const { socket } = req;
    res.on('close', () => {
      held = (socket as unknown as { readonly parser: { readonly incoming: unknown } }).parser.incoming;
    });
    res.end('first');
  });
  const { port } = await listen(t, server);
  const [answer] = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal(answer?.text, 'first');
  t.equal(held, null);
});

t.test('a body that comes is read', async (t) => {
  const { told } = await afterNext(t, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello', (req, res) => {
    t.ok(req.comesWithBody());
    const pieces: Buffer[] = [];
    req
      .on('data', (piece: Buffer) => pieces.push(piece))
      .on('end', () => {
        t.equal(Buffer.concat(pieces).toString(), 'hello');
        res.end('first');
      });
  });
  t.same(told, ['end', 'close']);
});

t.test('a body that nobody reads flows away, and so does one that nobody asked about', async (t) => {
  const body = '3\r\nabc\r\n0\r\n\r\n';
  for (const isAsked of [true, false]) {
    const { told } = await afterNext(
      t,
      `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body}`,
      (req, res) => {
        if (isAsked) t.ok(req.comesWithBody());
        res.end('first');
      },
    );
    t.same(told, ['end', 'close']);
  }
});
