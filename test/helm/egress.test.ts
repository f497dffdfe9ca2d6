/** The calling side in the chart: both directions in one pod, or alone. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { startFrom } from '../app/in-process-proxy.js';
import { startTarget } from '../app/egress/calling.js';
import { fencedBlocks } from '../docs/fenced-blocks.js';
import { manifestsOf, helm, notes, one, parentChart, render, type Manifest, type Values } from '../support/helm.js';
import { schemaFaults, unknownFields } from '../support/kubernetes.js';
import { request } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { fileOf, openingsOf, templateOf, type Container, type PodSpec } from './objects.js';
import { calling, callingPlaces, config, matrix, tls } from './values.js';

t.setTimeout(120_000);

interface ConfigFile {
  readonly listen?: unknown;
  readonly upstream?: unknown;
  readonly egress: { readonly listen: Readonly<Record<string, unknown>> };
}

const named = (name: string): readonly Manifest[] => {
  const row = matrix.find((each) => each.name === name);
  if (row === undefined) throw new Error(`no values of that name: ${name}`);
  return render(t, row.values);
};

const podOf = (manifests: readonly Manifest[]): PodSpec => templateOf(one(manifests, 'Deployment')).spec;

const configOf = (manifests: readonly Manifest[]): ConfigFile =>
  parse(fileOf(one(manifests, 'ConfigMap', 'sallyport'))) as ConfigFile;

const mountsOf = ({ volumeMounts = [] }: Container, volume: string): readonly object[] =>
  volumeMounts.filter(({ name }) => name === volume);

t.test('both directions: the workload calls a port of loopback, which nobody else is let to', async (t) => {
  const manifests = named('both directions, beside the service');
  const { listen, egress } = configOf(manifests);
  t.match(listen, { host: '0.0.0.0', port: 8443 });
  t.same(egress.listen, { host: '127.0.0.1', port: 8282 });
  const spec = podOf(manifests);
  const ports = [...(spec.initContainers ?? []), ...spec.containers].flatMap((container) => container['ports'] ?? []);
  t.same(ports, [
    { name: 'proxy', containerPort: 8443 },
    { name: 'probes', containerPort: 9902 },
  ]);
  t.notMatch(JSON.stringify(manifests.filter(({ kind }) => ['Service', 'NetworkPolicy'].includes(kind))), '8282');
  t.match(spec.initContainers?.[0]?.name, 'sallyport', 'it is there before the workload calls, and after');
});

t.test('by a socket: every container that runs beside Sallyport has it, and none can put another there', async (t) => {
  const manifests = named('both directions, by a socket, more of everything');
  t.same(configOf(manifests).egress.listen, { unix: '/run/calls/egress.sock', mode: '0660' });
  const spec = podOf(manifests);
  const socket = { name: 'sallyport-egress', mountPath: '/run/calls' };
  const [before, sallyport] = spec.initContainers ?? [];
  t.same(mountsOf(before ?? { name: '' }, 'sallyport-egress'), [], 'what ran before it ended has nobody to call');
  t.same(mountsOf(sallyport ?? { name: '' }, 'sallyport-egress'), [socket]);
  t.equal(spec.containers.length, 2);
  for (const container of spec.containers) {
    t.same(mountsOf(container, 'sallyport-egress'), [{ ...socket, readOnly: true }], container.name);
    t.same(mountsOf(container, 'sallyport-tokens'), [], 'tokens are Sallyport’s alone');
  }
  t.match(
    spec.volumes?.filter(({ name }) => ['sallyport-egress', 'sallyport-tokens'].includes(String(name))),
    [
      { emptyDir: {} },
      {
        projected: {
          sources: [{ serviceAccountToken: { path: 'billing', audience: 'billing', expirationSeconds: 600 } }],
        },
      },
    ],
  );
  t.equal(spec.automountServiceAccountToken, false, 'the token for Kubernetes itself stays out');
});

t.test('alone: nothing of the pod is open but its probes, and no Service is for callers', async (t) => {
  for (const name of ['the calling side alone', 'the calling side alone, beside a container of their own']) {
    const manifests = named(name);
    const file = configOf(manifests);
    t.same([file.listen, file.upstream], [undefined, undefined], name);
    const ports = openingsOf(one(manifests, 'NetworkPolicy')).flatMap((opening) => opening.ports);
    t.same(ports, [{ port: 9902 }], name);
    const services = manifests.filter(({ kind }) => kind === 'Service');
    t.same(
      services.map(({ metadata }) => metadata.name),
      ['shop-sallyport-metrics'],
      name,
    );
  }
  const told = notes(t, { config: { egress: calling }, extraContainers: [{ name: 'job', image: 'job:1' }] });
  t.match(told, /calls for the workload in its pod/);
  t.match(told, /Calls: {6}http:\/\/127\.0\.0\.1:8181\/PREFIX/);
  t.notMatch(told, /Callers:|The service is in another pod/);
});

t.test('where it listens counts at start, and what it calls is reloaded', async (t) => {
  const sums = (more: Values, values: Values = {}): string => {
    const receiver = { container: { name: 'orders', image: 'orders:1' } };
    const manifests = render(t, { tls, receiver, config: { ...config, ...more }, ...values });
    return templateOf(one(manifests, 'Deployment')).metadata.annotations['checksum/start'] ?? '';
  };
  const before = sums({ egress: calling });
  t.not(sums({}), before, 'whether there is one');
  t.not(sums({ egress: calling }, { ports: { egress: 1 } }), before, 'its port');
  t.equal(sums({ egress: { ...calling, hold_bodies: '1MiB' } }), before, 'a limit');
});

t.test('in the pod of a chart of theirs', async (t) => {
  const parent = parentChart(t);
  const values = join(tempDir(t), 'values.yaml');
  writeFileSync(values, JSON.stringify({ sallyport: { config: { egress: calling }, egress: callingPlaces } }));
  const { code, stdout, stderr } = helm(t, 'template', 'shop', parent, '--values', values);
  t.equal(code, 0, stderr);
  const manifests = manifestsOf(stdout);
  t.same([await schemaFaults(manifests), unknownFields(manifests)], [[], []]);
  const spec = podOf(manifests);
  for (const container of spec.containers) t.equal(mountsOf(container, 'sallyport-egress').length, 1, container.name);
});

t.test('what the chart renders runs: a call by the socket bears the token that was projected', async (t) => {
  const target = await startTarget(t, (_seen, _number, res) => res.end('done'));
  const folder = tempDir(t);
  const [calls, tokens] = [join(folder, 'calls'), join(folder, 'tokens')];
  for (const path of [calls, tokens]) mkdirSync(path);
  writeFileSync(join(tokens, 'billing'), 'token.of.billing', { mode: 0o600 });
  const rendered = fileOf(one(named('the calling side alone'), 'ConfigMap', 'sallyport'));
  const file = join(folder, 'sallyport.yaml');
  writeFileSync(
    file,
    rendered
      .replaceAll('/run/calls', calls)
      .replaceAll('/var/run/secrets/sallyport/tokens', tokens)
      .replace('https://billing.shop.svc', target.url)
      .replace(/port: 99\d\d/g, 'port: 0'),
  );
  const { started } = await startFrom(t, file);
  if (!started.ok) throw new Error(started.error.messages.join('\n'));
  t.equal(started.value.listeners.proxy, null);
  const answer = await request(0, { path: '/billing/v1/invoices' }, { unix: join(calls, 'egress.sock') });
  t.equal(answer.status, 200);
  t.match(target.seen, [{ url: '/v1/invoices', headers: { authorization: 'Bearer token.of.billing' } }]);
});

t.test('the values of docs/egress.md work', async (t) => {
  const [block] = fencedBlocks('docs/egress.md')
    .filter(({ language, text }) => language === 'yaml' && text.includes('receiver:'))
    .map(({ text }) => parse(text) as Values);
  const manifests = render(t, block ?? {});
  t.same([await schemaFaults(manifests), unknownFields(manifests)], [[], []]);
  t.same(configOf(manifests).egress.listen, { host: '127.0.0.1', port: 8181 });
});
