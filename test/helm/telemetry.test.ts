/** A collector in the chart: the example of its page, rendered by a real helm, and run. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { startFrom } from '../app/in-process-proxy.js';
import { fencedBlocks } from '../docs/fenced-blocks.js';
import { certificates } from '../support/certificates.js';
import { one, render, type Values } from '../support/helm.js';
import { schemaFaults, unknownFields } from '../support/kubernetes.js';
import { startCollector } from '../support/otlp-collector.js';
import { request } from '../support/raw-client.js';
import { fileOf, templateOf } from './objects.js';
import { config, tls } from './values.js';

t.setTimeout(120_000);

const [example] = fencedBlocks('helm/sallyport/README.md')
  .filter(({ language, text }) => language === 'yaml' && text.includes('telemetry:'))
  .map(({ text }) => parse(text) as { readonly config: Values } & Values);
const values: Values = { tls, ...example, config: { ...config, ...example?.config } };

t.test('the example fits Kubernetes, and its secret is a file of Sallyport alone', async (t) => {
  const receiver = { container: { name: 'orders', image: 'orders:1' } };
  const manifests = render(t, { ...values, receiver });
  t.same([await schemaFaults(manifests), unknownFields(manifests)], [[], []]);
  const { containers, initContainers = [] } = templateOf(one(manifests, 'Deployment')).spec;
  for (const { name, volumeMounts = [] } of [...containers, ...initContainers]) {
    const isMounted = volumeMounts.some(({ mountPath }) => mountPath === '/run/secrets/collector');
    t.equal(isMounted, name === 'sallyport', name);
  }
});

t.test('pods are replaced for another collector, and not for another ratio', (t) => {
  const sumOf = (telemetry: Values): string => {
    const manifests = render(t, { tls, config: { ...config, telemetry } });
    return templateOf(one(manifests, 'Deployment')).metadata.annotations['checksum/start'] ?? '';
  };
  const otlp = { endpoint: 'http://collector:4318' };
  const before = sumOf({ otlp, traces: { ratio: 0.1 } });
  t.equal(sumOf({ otlp, traces: { ratio: 0.5 } }), before);
  t.not(sumOf({ otlp: { endpoint: 'http://other:4318' } }), before);
  t.not(sumOf({ otlp, metrics: true }), before);
  t.end();
});

t.test('what it renders runs: the collector gets the spans, under the names of the pod', async (t) => {
  const { ca, server, dir } = certificates(t);
  const collector = await startCollector(t, { cert: server.cert, key: server.key });
  writeFileSync(join(dir, 'headers'), 'Authorization: Bearer of-the-collector\n', { mode: 0o600 });
  const file = join(dir, 'sallyport.yaml');
  writeFileSync(
    file,
    fileOf(one(render(t, values), 'ConfigMap', 'sallyport'))
      .replace('/run/secrets/collector', dir)
      .replace('/etc/private-ca/ca.crt', ca.certFile)
      .replaceAll('/tls/tls.crt', server.certFile)
      .replaceAll('/tls/tls.key', server.keyFile)
      .replace('https://collector.observability.svc:4318', collector.url)
      .replace('ratio: 0.05', 'ratio: 1')
      .replace(/port: (?:99\d\d|8\d\d\d)/g, 'port: 0'),
  );
  const env = { OTEL_SERVICE_NAME: 'orders-sallyport', OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=orders-0' };
  const { started } = await startFrom(t, file, env);
  if (!started.ok) throw new Error(`${started.error.messages.join('\n')}\n${readFileSync(file, 'utf8')}`);
  const port = started.value.listeners.proxy?.port ?? 0;
  await request(port, { path: '/orders' }, { tls: { ca: ca.cert } });
  await started.value.stop();
  t.match(collector.spans(), [{ service: 'orders-sallyport', attributes: { 'http.response.status_code': 401 } }]);
  t.ok(collector.exports.some(({ path }) => path === '/v1/metrics'));
  for (const { headers } of collector.exports) t.equal(headers.authorization, 'Bearer of-the-collector');
  t.match(collector.exports[0]?.bytes.toString('latin1'), 'orders-0');
});
