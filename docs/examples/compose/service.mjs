/** A service as there are many: it keeps orders, and leaves it to what stands in front to decide who may ask. */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const orders = [];

const server = createServer(async (req, res) => {
  const answer = (status, body) =>
    res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  // Set by Sallyport alone: what a caller sends under this name is taken away.
  const caller = req.headers['x-auth-subject'];
  if (req.url === '/healthz') return void answer(200, { healthy: true });
  if (req.url !== '/orders') return void answer(404, { title: 'There is nothing here' });
  if (req.method === 'GET') return void answer(200, { caller, orders });
  const order = { number: orders.length + 1, item: JSON.parse(await text(req)).item, caller };
  orders.push(order);
  answer(201, order);
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`listening on ${server.address().port}`),
);
