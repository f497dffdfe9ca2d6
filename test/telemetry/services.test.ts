/** One trace over caller, calling side, proxy and service: real processes, over both versions of HTTP. */
import t from 'tap';
import { readProjectFile } from '../support/source-files.js';
import { drawTrace, labelOf } from './draw-trace.js';
import { asTree, traceOneWrite } from './services.js';

/** What belongs below what. */
const expected = [
  '0 shop CLIENT POST',
  '1 shop-sallyport SERVER POST /api/orders/{id}',
  '2 shop-sallyport CLIENT POST /orders/{id}',
  '3 orders-sallyport SERVER POST /orders/{id}',
  '4 orders-sallyport INTERNAL reserve',
  '4 orders-sallyport CLIENT POST /orders/{id}',
  '5 orders SERVER POST /orders/{id}',
  '4 orders-sallyport INTERNAL settle',
];

for (const version of ['1.1', '2'] as const) {
  t.test(`each span has the right parent, over HTTP/${version}`, async (t) => {
    const spans = await traceOneWrite(t, version);
    const tree = asTree(spans);
    t.same(
      tree.map(({ depth, service, kind, name }) => `${String(depth)} ${service} ${kind} ${name}`),
      expected,
    );
    t.equal(tree.length, spans.length, 'no span stands beside the tree');
    t.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    t.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
    for (const { kind, name, attributes } of spans) {
      if (kind === 'INTERNAL') continue;
      t.equal(attributes['http.response.status_code'], 201, name);
      t.equal(attributes['network.protocol.version'], version, name);
    }
    const picture = drawTrace(spans);
    const drawn = readProjectFile('docs/trace.svg');
    for (const span of spans) {
      t.ok(picture.includes(labelOf(span)), labelOf(span));
      t.ok(drawn.includes(labelOf(span)), `the picture in the docs has ${labelOf(span)}`);
    }
  });
}
