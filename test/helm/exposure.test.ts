/** Who can reach what: the Services, and the NetworkPolicy. */
import t from 'tap';
import { notes, one, render, type Manifest, type Values } from '../support/helm.js';
import { openingsOf, serviceSpecOf } from './objects.js';
import { config, matrix, tls } from './values.js';

t.setTimeout(120_000);

const ports = { admin: 9901, probes: 9902 };

/** Ways to offer callers a Service; cloud load balancers and nodes offer every port of it to the outside. */
const exposed: readonly { readonly name: string; readonly values: Values }[] = [
  'ClusterIP',
  'NodePort',
  'LoadBalancer',
].flatMap((type) => [
  { name: `${type}, alone`, values: { config, tls, service: { type } } },
  {
    name: `${type}, beside the service`,
    values: { config, tls, service: { type }, receiver: { container: { name: 'orders', image: 'orders:1' } } },
  },
  {
    name: `${type}, in somebody else's pod`,
    values: { config, tls, service: { type }, sidecar: { enabled: true, podLabels: { app: 'orders' } } },
  },
]);

function servicesOf(manifests: readonly Manifest[]): readonly Manifest[] {
  return manifests.filter(({ kind }) => kind === 'Service');
}

t.test('the Service of callers offers their port and no other: neither /metrics nor /app-probe', async (t) => {
  for (const { name, values } of [...matrix, ...exposed]) {
    const services = servicesOf(render(t, values));
    for (const service of services.filter(({ metadata }) => !metadata.name.endsWith('-metrics'))) {
      const { ports: offered } = serviceSpecOf(service);
      t.equal(offered.length, 1, name);
      t.notOk(
        offered.some(({ port, targetPort }) =>
          [port, targetPort].some((number) => Object.values(ports).includes(number)),
        ),
        name,
      );
    }
    const metrics = services.filter((service) =>
      serviceSpecOf(service).ports.some(({ targetPort }) => targetPort === ports.probes),
    );
    t.ok(metrics.length <= 1, name);
    for (const service of metrics) {
      t.equal(serviceSpecOf(service).type, 'ClusterIP', `${name}: inside of the cluster only`);
    }
    const offered = services.flatMap((service) => serviceSpecOf(service).ports.map(({ targetPort }) => targetPort));
    t.notOk(offered.includes(ports.admin), `${name}: nobody is offered /status`);
  }
});

t.test('the Service says what its port speaks where the values do, and else nothing', (t) => {
  for (const appProtocol of [undefined, '', 'kubernetes.io/h2c', 'grpc', 'https']) {
    const service = appProtocol === undefined ? {} : { appProtocol };
    const [callers] = servicesOf(render(t, { config, tls, service }));
    if (callers === undefined) throw new Error('no Service');
    t.equal(
      serviceSpecOf(callers).ports[0]?.appProtocol,
      appProtocol === '' ? undefined : appProtocol,
      String(appProtocol),
    );
  }
  t.end();
});

t.test('the port of callers, and the address in the notes, say https where TLS is spoken there', (t) => {
  const behind = {
    config: { ...config, listen: { host: '127.0.0.1', port: 8080, tls_terminated_by: 'nginx' } },
    extraContainers: [{ name: 'nginx', image: 'nginx:1' }],
  };
  const cases: readonly (readonly [string, string, Values])[] = [
    ['a secret', 'https', { config, tls }],
    ['TLS of the config', 'https', { config: { ...config, listen: { tls: { cert_file: '/c', key_file: '/k' } } } }],
    ['a container of the pod', 'https', { ...behind, service: { appProtocol: 'https' } }],
    ['a mesh', 'http', { config, tls: { terminatedBy: 'istio' } }],
    ['a mesh, and HTTP/2', 'http', { config, tls: { terminatedBy: 'istio' }, service: { appProtocol: 'grpc' } }],
  ];
  for (const [name, scheme, values] of cases) {
    const callers = one(render(t, values), 'Service', 'sallyport');
    t.equal(serviceSpecOf(callers).ports[0]?.name, scheme, name);
    t.match(notes(t, values), new RegExp(`Callers: {4}${scheme}://shop-sallyport\\.shop\\.svc:443\\n`), name);
  }
  t.end();
});

t.test('a ServiceMonitor finds the metrics, and only them', async (t) => {
  const manifests = render(t, {
    config,
    tls,
    service: { type: 'LoadBalancer' },
    metrics: { serviceMonitor: { enabled: true } },
  });
  const { selector, endpoints } = one(manifests, 'ServiceMonitor')['spec'] as {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly endpoints: readonly { readonly port: string }[];
  };
  const wanted = Object.entries(selector.matchLabels);
  const found = servicesOf(manifests).filter(({ metadata: { labels } }) =>
    wanted.every(([name, value]) => labels?.[name] === value),
  );
  t.same(
    found.map(({ metadata }) => metadata.name),
    ['shop-sallyport-metrics'],
  );
  t.same(
    found.flatMap((service) => serviceSpecOf(service).ports.map(({ name }) => name)),
    endpoints.map(({ port }) => port),
  );
  const [callers, metrics] = ['sallyport', 'metrics'].map((end) => serviceSpecOf(one(manifests, 'Service', end)));
  t.same(metrics?.selector, callers?.selector, 'both are of the same pods');
});

t.test(
  'without a Service for callers there are metrics still, and without one for metrics nobody asks there',
  async (t) => {
    const without = render(t, {
      config,
      tls,
      service: { enabled: false },
      metrics: { serviceMonitor: { enabled: true } },
    });
    t.same(
      servicesOf(without).map(({ metadata }) => metadata.name),
      ['shop-sallyport-metrics'],
    );
    t.equal(one(without, 'Pod', 'test-ready').kind, 'Pod', 'helm test asks there');
    const none = render(t, { config, tls, metrics: { service: { enabled: false } } });
    t.same(
      servicesOf(none).map(({ metadata }) => metadata.name),
      ['shop-sallyport'],
    );
    t.same(
      none.filter(({ kind }) => kind === 'Pod'),
      [],
      'helm test has nothing to ask',
    );
  },
);

t.test(
  'the NetworkPolicy opens the port of callers to the address ranges that are named, and that of probes to none of them',
  async (t) => {
    const callerCidrs = ['203.0.113.0/24', '2001:db8::/32'];
    const opened = (networkPolicy: Values): Readonly<Record<number, readonly unknown[]>> => {
      const policy = one(render(t, { config, tls, service: { type: 'LoadBalancer' }, networkPolicy }), 'NetworkPolicy');
      return Object.fromEntries(openingsOf(policy).map(({ ports: [port], from }) => [port?.port ?? 0, from]));
    };
    const cluster = [{ namespaceSelector: {} }];
    t.same(opened({}), { 8443: cluster, 9902: cluster });
    const blocks = callerCidrs.map((cidr) => ({ ipBlock: { cidr } }));
    t.same(opened({ callerCidrs }), { 8443: [...cluster, ...blocks], 9902: cluster });
    const checkout = { podSelector: { matchLabels: { app: 'checkout' } } };
    t.same(
      opened({ callerCidrs, callers: [checkout] })[8443],
      [checkout, ...blocks],
      'with callers named, not the whole cluster',
    );
  },
);

t.test('whoever exposes Sallyport and names no addresses is told that callers from outside are shut out', async (t) => {
  const told = (service: Values, networkPolicy: Values = {}): boolean =>
    notes(t, { config, tls, service, networkPolicy }).includes('networkPolicy.callerCidrs');
  for (const type of ['LoadBalancer', 'NodePort']) {
    t.ok(told({ type }), type);
    t.notOk(told({ type }, { callerCidrs: ['203.0.113.0/24'] }), `${type} with ranges`);
    t.notOk(
      told({ type }, { callers: [{ ipBlock: { cidr: '203.0.113.0/24' } }] }),
      `${type} with a block among the callers`,
    );
    t.ok(told({ type }, { callers: [{ podSelector: {} }] }), `${type} with pods alone`);
    t.notOk(told({ type }, { enabled: false }), `${type} without a policy`);
  }
  t.notOk(told({ type: 'ClusterIP' }));
  t.notOk(told({ type: 'LoadBalancer', enabled: false }));
});

t.test('a range of addresses that is none is refused', async (t) => {
  for (const cidr of ['203.0.113.7', 'everybody', '203.0.113.0/24, 10.0.0.0/8']) {
    t.throws(() => render(t, { config, tls, networkPolicy: { callerCidrs: [cidr] } }), /callerCidrs/, cidr);
  }
});
