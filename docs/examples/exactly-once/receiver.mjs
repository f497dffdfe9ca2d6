/**
 * A receiving service that writes each order exactly once: the order, what is to be done elsewhere, and the record that
 * says it was applied are one PostgreSQL transaction. Behind a route with `idempotency: { mode: required, receiver:
 * deduplicates }`.
 *
 *   npm install pg
 *   psql "$DATABASE_URL" -f schema.sql
 *   DATABASE_URL=postgres://… PORT=3000 node receiver.mjs
 */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
// A connection that breaks is replaced, and its transaction fails; without listeners it would end the process, in use
// or not.
pool.on('error', (error) => console.error(error.message));
pool.on('connect', (client) => client.on('error', () => undefined));

/** One attempt at a time gets past this, and learns whether a later one was here before it. */
const begin = `
  insert into applied_writes (record, fence) values ($1, $2)
    on conflict (record) do update set fence = greatest(applied_writes.fence, excluded.fence)
    returning status, body, fence > $2 as overtaken`;

/** Applies the order unless it was applied, and answers what the first one was answered. */
async function createOrder(client, record, fence, { customer, item }) {
  const {
    rows: [row],
  } = await client.query(begin, [record, fence]);
  if (row.status !== null) return { status: row.status, body: row.body, outcome: 'committed' };
  // Never without the outcome: this answer would be kept as the write's result, and the write would never happen.
  if (row.overtaken) return { status: 409, body: { title: 'A later attempt was here' }, outcome: 'not-applied' };
  if (typeof customer !== 'string' || typeof item !== 'string') {
    // Nothing was done, and the row stays: an attempt with a lower fence that comes late finds it.
    return { status: 422, body: { title: 'customer and item are needed' }, outcome: 'not-applied' };
  }
  const {
    rows: [order],
  } = await client.query('insert into orders (customer, item) values ($1, $2) returning id', [customer, item]);
  const later = [record, { customer, order: order.id }];
  await client.query("insert into outbox (record, kind, payload) values ($1, 'confirmation-mail', $2)", later);
  const body = { id: order.id, customer, item };
  await client.query('update applied_writes set status = 201, body = $2 where record = $1', [record, body]);
  return { status: 201, body, outcome: 'committed' };
}

/** What is no JSON object is an order that lacks everything. */
function parseOrder(body) {
  try {
    return Object(JSON.parse(body));
  } catch {
    return {};
  }
}

async function inTransaction(work) {
  const client = await pool.connect();
  let failure;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    failure = error;
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    // A connection in an unknown state is closed and not used again.
    client.release(failure);
  }
}

const server = createServer(async (req, res) => {
  try {
    const record = req.headers['idempotency-record'];
    const fence = req.headers['idempotency-fence'];
    if (req.method !== 'POST' || record === undefined || fence === undefined) return void res.writeHead(404).end();
    const order = parseOrder(await text(req));
    const { status, body, outcome } = await inTransaction((client) => createOrder(client, record, fence, order));
    res.writeHead(status, { 'Content-Type': 'application/json', 'Idempotency-Outcome': outcome });
    res.end(JSON.stringify(body));
  } catch (error) {
    // Whether a commit that broke off was applied is not known here. No answer leaves the write in doubt: its retry
    // finds out.
    console.error(error.message);
    res.destroy();
  }
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () =>
  console.log(`listening on ${server.address().port}`),
);
