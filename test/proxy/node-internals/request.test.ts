/**
 * Holds Node to what of its requests is used beside their documented interface: titles begin with the symbol that is
 * gone where a test fails.
 */
import { createServer, IncomingMessage, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { HeldBody, LeanRequest, limitBody } from '../../../src/proxy/node-internals/request.js';
import { listen } from '../../support/listening.js';
import { sendRaw } from '../../support/raw-client.js';

/** Two requests on one connection: what became of the first when the second was answered, and its answer. */
async function afterNext(
  t: Test,
  first: string,
  serve: (req: LeanRequest, res: ServerResponse) => void,
): Promise<{ readonly first: LeanRequest; readonly told: string[] }> {
  const told: string[] = [];
  const requests: LeanRequest[] = [];
  const server = createServer({ IncomingMessage: LeanRequest }, (req, res) => {
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

t.test(
  'req.push(null): Node ends the stream of a body that does not come by it; a request without a body is over with its head',
  async (t) => {
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
  },
);

t.test(
  'req._readableState.endEmitted: Node lets go of the request of an idle connection where it says so',
  async (t) => {
    let held: unknown = 'not asked';
    const server = createServer({ IncomingMessage: LeanRequest }, (req, res) => {
      if (!(req instanceof LeanRequest)) throw new Error('another class');
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
  },
);

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

t.test(
  'req._dump: Node calls it after the response; a body that nobody reads flows away, and so does one that nobody asked about',
  async (t) => {
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
  },
);

t.test('IncomingMessage.prototype._dump and req._readableState.endEmitted are there', (t) => {
  const { prototype } = IncomingMessage as unknown as { readonly prototype: { readonly _dump: unknown } };
  t.type(prototype._dump, 'function');
  const req = new IncomingMessage(new Socket()) as unknown as { readonly _readableState: object };
  t.ok('endEmitted' in req._readableState);
  t.end();
});

t.test('req.upgrade: Node asks for it; the offer of another protocol than WebSocket is a plain request', async (t) => {
  const seen: string[] = [];
  const server = createServer({ IncomingMessage: LeanRequest }, (req, res) => {
    seen.push(`request ${req.url ?? ''}`);
    res.end('first');
  }).on('upgrade', (req: IncomingMessage, socket: Socket) => {
    seen.push(`upgrade ${req.url ?? ''}`);
    socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
  });
  const { port } = await listen(t, server);
  const offer = (path: string, protocol: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
  t.equal((await sendRaw(port, offer('/h2', 'h2c')))[0]?.status, 200);
  t.equal((await sendRaw(port, offer('/ws', 'websocket')))[0]?.status, 400);
  t.same(seen, ['request /h2', 'upgrade /ws']);
});

t.test('req.push: Node hands a body and its end over by it, however it is read', async (t) => {
  for (const bytes of [8, 9]) {
    const told: string[] = [];
    const server = createServer((req, res) => {
      limitBody(req, 8, () => {
        told.push('too large');
        res.writeHead(413, { connection: 'close' }).end('refused');
      });
      req
        .on('data', (chunk: Buffer) => told.push(chunk.toString()))
        .on('end', () => {
          told.push('end');
          res.end('read');
        });
    });
    const { port } = await listen(t, server);
    const chunks =
      ['1234', '5678', '9']
        .join('')
        .slice(0, bytes)
        .match(/.{1,4}/g) ?? [];
    const body = [...chunks, ''].map((chunk) => `${String(chunk.length)}\r\n${chunk}\r\n`).join('');
    const [answer] = await sendRaw(port, `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
    t.equal(answer?.text, bytes > 8 ? 'refused' : 'read');
    t.same(told, ['1234', '5678', bytes > 8 ? 'too large' : 'end']);
  }
});

t.test('req.push, req._read: a body that was read whole is read again by others', async (t) => {
  for (const waitMs of [0, 20]) {
    const server = createServer((req, res) => {
      setTimeout(() => {
        const held = new HeldBody(req);
        void text(held).then(async (whole) => {
          t.ok(held.isComplete());
          held.giveBack(Buffer.from(whole));
          res.end(`${whole} ${await text(req)}`);
        });
      }, waitMs);
    });
    const { port } = await listen(t, server);
    const [answer] = await sendRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody');
    t.equal(answer?.text, 'body body', `after ${String(waitMs)} ms`);
  }
});
