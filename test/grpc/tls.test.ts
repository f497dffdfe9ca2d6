/** gRPC over TLS: towards callers, with their certificates, and towards the service. */
import { credentials, ServerCredentials, status } from '@grpc/grpc-js';
import t from 'tap';
import { certificates, type Certificate } from '../support/certificates.js';
import { configOf, startGrpcProxy } from './deployment.js';
import { createCaller, outcomeOf, prefix, startNodeService } from './service.js';

t.setTimeout(120_000);

const permissions = ['orders:write'];
const pem = (text: string): Buffer => Buffer.from(text);

t.test('calls of all kinds pass over TLS on both sides, for callers whose certificate holds', async (t) => {
  const files = certificates(t);
  const { ca, server, client, stranger } = files;
  const pair = { cert_chain: pem(server.cert), private_key: pem(server.key) };
  const service = await startNodeService(t, ServerCredentials.createSsl(null, [pair]));
  const tls = { cert_file: server.certFile, key_file: server.keyFile, client_ca_file: ca.certFile };
  const upstream = { url: `https://localhost:${String(service.port)}`, ca_file: ca.certFile, http2: true };
  const proxy = await startGrpcProxy(t, service.port, { listen: { http2: true, tls }, upstream });
  const { Authorization } = proxy.authorization({ permissions });
  const shown = (own: Certificate | null): ReturnType<typeof credentials.createSsl> =>
    own === null
      ? credentials.createSsl(pem(ca.cert))
      : credentials.createSsl(pem(ca.cert), pem(own.key), pem(own.cert));

  const caller = createCaller(t, proxy.port, Authorization, {}, shown(client));
  const unary = await caller.unary(`${prefix}Unary`, Buffer.alloc(500_000, 'o'), { metadata: { 'x-text': 'a text' } });
  t.same([unary.status.code, unary.messages[0]?.length], [status.OK, 500_000]);
  t.same(unary.status.metadata.get('x-trailing'), ['a text']);
  t.same(unary.status.metadata.get('x-seen-subject'), ['checkout']);
  const collected = await caller.collect(`${prefix}Collect`, [Buffer.from('1'), Buffer.from('22')]);
  t.same(collected.messages.map(String), ['2:3']);
  const split = await outcomeOf(caller.split(`${prefix}Split`, Buffer.from('1000')));
  t.same([split.status.code, split.messages.length], [status.OK, 1_000]);
  const both = caller.both(`${prefix}Both`);
  const ended = outcomeOf(both);
  both.write(Buffer.from('one'));
  both.end();
  t.same((await ended).messages.map(String), ['one']);
  const nobody = createCaller(t, proxy.port, null, {}, shown(client));
  t.equal((await nobody.unary(`${prefix}Unary`)).status.code, status.UNAUTHENTICATED);

  const runs = service.runs();
  for (const own of [null, stranger]) {
    const refused = createCaller(t, proxy.port, Authorization, {}, shown(own));
    t.equal((await refused.unary(`${prefix}Unary`)).status.code, status.UNAVAILABLE, 'TLS is refused');
  }
  t.equal(service.runs(), runs);
  const secure = await createCaller(t, proxy.port, Authorization).unary(`${prefix}Unary`);
  t.equal(secure.status.code, status.UNAVAILABLE, 'and so is what is no TLS');
});

t.test('a service whose certificate does not hold is sent nothing', async (t) => {
  const { ca, misnamed } = certificates(t);
  const pair = { cert_chain: pem(misnamed.cert), private_key: pem(misnamed.key) };
  const service = await startNodeService(t, ServerCredentials.createSsl(null, [pair]));
  const upstream = { url: `https://localhost:${String(service.port)}`, ca_file: ca.certFile, http2: true };
  const proxy = await startGrpcProxy(t, service.port, { ...configOf(service.port), upstream });
  const { Authorization } = proxy.authorization({ permissions });
  const { status: end } = await createCaller(t, proxy.port, Authorization).unary(`${prefix}Unary`);
  t.equal(end.code, status.UNAVAILABLE);
  t.match(String(end.metadata.get('proxy-status')[0]), /^sallyport; error=tls_certificate_error/);
  t.equal(service.runs(), 0);
});
