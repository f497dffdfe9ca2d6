/** What operators add to the chart's objects: it gets there, and it cannot take the place of what is Sallyport's. */
import t from 'tap';
import { stringify } from 'yaml';
import {
  chartDir,
  helm,
  manifestsOf,
  one,
  parentChart,
  render,
  valuesFile,
  type Manifest,
  type Values,
} from '../support/helm.js';
import { schemaFaults, unknownFields } from '../support/kubernetes.js';
import { templateOf, type Container, type PodSpec } from './objects.js';
import { config, extras, tls } from './values.js';

t.setTimeout(120_000);

const service: Values = { receiver: { container: { name: 'orders', image: 'orders:1' } } };
const foreign: Values = { sidecar: { enabled: true, podLabels: { app: 'orders' } } };

/** Two ways in which the chart makes a pod: Sallyport alone, and beside the service. */
const pods: readonly { readonly name: string; readonly way: Values }[] = [
  { name: 'alone', way: {} },
  { name: 'beside the service', way: service },
];

function podOf(values: Values): PodSpec {
  return templateOf(one(render(t, { config, tls, ...values }), 'Deployment')).spec;
}

function sallyportOf({ containers, initContainers = [] }: PodSpec): Container {
  const found = [...initContainers, ...containers].find(({ name }) => name === 'sallyport');
  if (found === undefined) throw new Error('no container of Sallyport');
  return found;
}

function sayOf(values: Values): string {
  return helm(t, 'template', 'shop', chartDir, '--values', valuesFile(t, { config, tls, ...values })).stderr;
}

t.test(
  "environment, volumes, mounts and files of ConfigMaps reach Sallyport's container, beside its own",
  async (t) => {
    for (const { name, way } of pods) {
      const secretEnv = [{ name: 'CORE_API_KEY', secretName: 'core', key: 'api-key' }];
      const [bare, spec] = [podOf(way), podOf({ ...way, ...extras, secretEnv })];
      const [before, after] = [sallyportOf(bare), sallyportOf(spec)];
      t.same(
        after.env?.map((variable) => variable.name),
        ['CORE_API_KEY', 'NODE_EXTRA_CA_CERTS', 'POD'],
        name,
      );
      t.match(after, { envFrom: extras.extraEnvFrom, env: [{}, ...extras.extraEnv] }, name);
      const added = [
        { name: 'sallyport-files-0', mountPath: '/etc/private-ca', readOnly: true },
        ...extras.extraVolumeMounts,
      ];
      t.same(after.volumeMounts, [...(before.volumeMounts ?? []), ...added], name);
      const volumes = [
        ...(bare.volumes ?? []),
        { name: 'sallyport-files-0', configMap: { name: 'private-ca' } },
        ...extras.extraVolumes,
      ];
      const sorted = (list: readonly object[] = []): readonly string[] =>
        list.map((volume) => stringify(volume, { sortMapEntries: true })).sort();
      t.same(sorted(spec.volumes), sorted(volumes), name);
    }
  },
);

t.test('init containers run before Sallyport, and other containers beside it', async (t) => {
  const names = (containers: readonly Container[] = []): readonly string[] => containers.map(({ name }) => name);
  const alone = podOf(extras);
  t.same([names(alone.initContainers), names(alone.containers)], [['fetch-ca'], ['sallyport', 'log-shipper']]);
  const beside = podOf({ ...service, ...extras });
  t.same(
    [names(beside.initContainers), names(beside.containers)],
    [
      ['fetch-ca', 'sallyport'],
      ['orders', 'log-shipper'],
    ],
  );
  t.match(
    beside.containers[1],
    { lifecycle: { preStop: { sleep: { seconds: 10 } } } },
    'what works beside the service goes on as long as it',
  );
});

t.test('labels and annotations: common ones on every object and pod, others where they are asked for', async (t) => {
  const everywhere = { commonLabels: { team: 'orders' }, commonAnnotations: { owner: 'orders@example.com' } };
  const monitored = {
    metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true }, dashboard: { enabled: true } },
  };
  for (const { name, way } of [...pods, { name: "in somebody else's pod", way: foreign }]) {
    const objects = render(t, { config, tls, ...way, ...everywhere, ...monitored });
    t.ok(objects.length > 8, name);
    for (const { kind, metadata } of objects) {
      t.match(
        metadata,
        { labels: { team: 'orders' }, annotations: { owner: 'orders@example.com' } },
        `${name}: ${kind} ${metadata.name}`,
      );
      t.ok(metadata.labels?.['app.kubernetes.io/instance'], `${name}: ${kind} ${metadata.name} keeps its own`);
    }
  }
  const own = {
    deploymentAnnotations: { of: 'deployment' },
    podAnnotations: { of: 'pods' },
    podLabels: { of: 'pods', team: 'payments' },
    service: { annotations: { of: 'service' }, labels: { of: 'service' } },
    metrics: { service: { annotations: { of: 'metrics' }, labels: { of: 'metrics' } } },
    serviceAccount: { annotations: { of: 'account' } },
  };
  const objects = render(t, { config, tls, ...everywhere, ...own });
  t.match(one(objects, 'Deployment').metadata, { annotations: { of: 'deployment' } });
  const { labels, annotations } = templateOf(one(objects, 'Deployment')).metadata;
  t.match(labels, { of: 'pods', team: 'payments' }, 'a label of the pods wins over the common one');
  t.match(annotations, { of: 'pods', owner: 'orders@example.com', 'checksum/start': /^\w{64}$/ });
  t.match(one(objects, 'Service', 'sallyport').metadata, {
    annotations: { of: 'service' },
    labels: { of: 'service', team: 'orders' },
  });
  const component = { 'app.kubernetes.io/component': 'metrics' };
  t.match(one(objects, 'Service', 'metrics').metadata, {
    annotations: { of: 'metrics' },
    labels: { of: 'metrics', ...component },
  });
  t.match(one(objects, 'ServiceAccount').metadata, { annotations: { of: 'account' } });
  const { selector } = one(objects, 'Deployment')['spec'] as { readonly selector: { readonly matchLabels: object } };
  t.same(Object.keys(selector.matchLabels).length, 2, 'a selector cannot be changed: no label of the values is in it');
});

/** Names that would take the place of Sallyport's own, or of one another, and what the operator is told. */
const taken: readonly { readonly name: string; readonly values: Values; readonly says: RegExp }[] = [
  {
    name: 'a variable that a secret sets',
    says: /secretEnv and extraEnv: "CORE_API_KEY" is there twice/,
    values: {
      secretEnv: [{ name: 'CORE_API_KEY', secretName: 'core', key: 'k' }],
      extraEnv: [{ name: 'CORE_API_KEY', value: 'x' }],
    },
  },
  {
    name: 'a variable twice',
    says: /"A" is there twice/,
    values: {
      extraEnv: [
        { name: 'A', value: 'x' },
        { name: 'A', value: 'y' },
      ],
    },
  },
  {
    name: 'the volume of the config',
    says: /volume "sallyport-config"/,
    values: { extraVolumes: [{ name: 'sallyport-config', emptyDir: {} }] },
  },
  {
    name: 'a volume twice',
    says: /volume "a" is there twice/,
    values: {
      extraVolumes: [
        { name: 'a', emptyDir: {} },
        { name: 'a', emptyDir: {} },
      ],
    },
  },
  {
    name: 'a container',
    says: /container "sallyport": the name is Sallyport's own/,
    values: { extraContainers: [{ name: 'sallyport', image: 'x' }] },
  },
  {
    name: 'an init container',
    says: /container "sallyport": the name is Sallyport's own/,
    values: { extraInitContainers: [{ name: 'sallyport', image: 'x' }] },
  },
  {
    name: 'a container twice',
    says: /container "a" is there twice/,
    values: { extraContainers: [{ name: 'a', image: 'x' }], extraInitContainers: [{ name: 'a', image: 'x' }] },
  },
  ...['/etc/sallyport', '/etc/sallyport/', '/etc', '/', '/tls/ca', '/app', '/usr/local', '/app/../app'].map(
    (mountPath) => ({
      name: `a mount at ${mountPath}`,
      says: /mountPath ".*": \/.* is Sallyport's own/,
      values: { extraVolumeMounts: [{ name: 'a', mountPath }] },
    }),
  ),
  {
    name: 'a secret over the program',
    says: /\/app is Sallyport's own/,
    values: { secretFiles: [{ secretName: 'a', mountPath: '/app' }] },
  },
  {
    name: 'two mounts at one place',
    says: /mountPath "\/run\/a": something is mounted there/,
    values: {
      secretFiles: [{ secretName: 'a', mountPath: '/run/a' }],
      configMapFiles: [{ configMapName: 'a', mountPath: '/run/a/' }],
    },
  },
  {
    name: 'a label of a selector',
    says: /label "app.kubernetes.io\/instance" is the chart's own/,
    values: { podLabels: { 'app.kubernetes.io/instance': 'x' } },
  },
  {
    name: 'a common label',
    says: /label "app.kubernetes.io\/name" is the chart's own/,
    values: { commonLabels: { 'app.kubernetes.io/name': 'x' } },
  },
  {
    name: 'the component of metrics',
    says: /label "app.kubernetes.io\/component"/,
    values: { metrics: { service: { labels: { 'app.kubernetes.io/component': 'x' } } } },
  },
  {
    name: 'the checksum',
    says: /annotation "checksum\/start" is the chart's own/,
    values: { podAnnotations: { 'checksum/start': 'x' } },
  },
  { name: 'a misspelt field of a variable', says: /valeu/, values: { extraEnv: [{ name: 'A', valeu: 'x' }] } },
  { name: 'a volume without a name', says: /extraVolumes/, values: { extraVolumes: [{ emptyDir: {} }] } },
  {
    name: 'another path for a probe',
    says: /readinessProbe/,
    values: { readinessProbe: { httpGet: { path: '/livez' } } },
  },
];

t.test("a name that would take the place of Sallyport's own is refused, in words", async (t) => {
  for (const { name, values, says } of taken) {
    for (const { name: pod, way } of pods) t.match(sayOf({ ...way, ...values }), says, `${name}, ${pod}`);
  }
  const receiver = {
    container: { name: 'orders', image: 'orders:1' },
    volumes: [{ name: 'sallyport-tls', emptyDir: {} }],
  };
  t.match(
    sayOf({ receiver }),
    /volume "sallyport-tls": names that begin with sallyport- are Sallyport's own/,
    'a volume of the service',
  );
  t.match(
    sayOf({ receiver: { container: { name: 'sallyport', image: 'orders:1' } } }),
    /container "sallyport"/,
    'the service itself',
  );
  t.equal(
    sayOf({ ...extras, extraVolumeMounts: [{ name: 'scratch', mountPath: '/etc/sallyport-extra' }] }),
    '',
    'a path that only begins alike',
  );
});

t.test('fields of pods are those of Kubernetes', async (t) => {
  const fields = {
    hostAliases: [{ ip: '10.0.0.7', hostnames: ['issuer.internal'] }],
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['10.0.0.10'] },
    runtimeClassName: 'gvisor',
    priorityClassName: 'high',
    enableServiceLinks: true,
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' },
      {
        maxSkew: 1,
        topologyKey: 'rack',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app: 'mine' } },
      },
    ],
  };
  const objects = render(t, {
    config,
    tls,
    ...extras,
    ...fields,
    serviceAccount: { automount: true },
    updateStrategy: { type: 'Recreate', rollingUpdate: null },
    startupProbe: { failureThreshold: 120 },
  });
  t.same(await schemaFaults(objects), []);
  t.same(unknownFields(objects), []);
  const deployment = one(objects, 'Deployment');
  const { spec } = templateOf(deployment);
  const {
    topologySpreadConstraints: [own, given],
    ...others
  } = fields;
  t.match(spec, { ...others, automountServiceAccountToken: true });
  t.match(spec['topologySpreadConstraints'], [
    { ...own, labelSelector: { matchLabels: { 'app.kubernetes.io/instance': 'shop' } } },
    given,
  ]);
  t.same((deployment['spec'] as { readonly strategy: object }).strategy, { type: 'Recreate' });
  t.match(sallyportOf(spec).startupProbe, { httpGet: { path: '/livez' }, periodSeconds: 1, failureThreshold: 120 });
});

t.test(
  'a key of a security context goes where the values say null, as OpenShift needs, in a chart of its own and as a dependency',
  async (t) => {
    const ids = { securityContext: { runAsUser: null, runAsGroup: null }, podSecurityContext: { fsGroup: null } };
    const spec = podOf({ ...service, ...ids });
    t.notOk('runAsUser' in (sallyportOf(spec).securityContext ?? {}));
    t.match(sallyportOf(spec).securityContext, { readOnlyRootFilesystem: true, runAsNonRoot: true });
    t.equal(spec.securityContext, undefined);
    const test = one(render(t, { config, tls, ...ids }), 'Pod', 'test-ready')['spec'] as PodSpec;
    t.notOk('runAsUser' in (test.containers[0]?.securityContext ?? {}), 'nor in the pod of helm test');
    const inside = templateOf(one(render(t, { sallyport: ids }, parentChart(t)), 'Deployment')).spec;
    t.notOk('runAsUser' in (sallyportOf(inside).securityContext ?? {}));
    t.equal(inside.securityContext, undefined);
  },
);

t.test("objects of the operator's own are rendered with the rest, with what the chart knows", async (t) => {
  const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include "sallyport.fullname" . }}-extra\n';
  const map = { apiVersion: 'v1', kind: 'Secret', metadata: { name: '{{ .Release.Name }}-extra' } };
  const objects: readonly Manifest[] = render(t, { config, tls, extraObjects: [text, map] });
  t.same(
    [one(objects, 'ConfigMap', 'extra').metadata.name, one(objects, 'Secret').metadata.name],
    ['shop-sallyport-extra', 'shop-extra'],
  );
});

t.test('a release whose name is a number', async (t) => {
  const values = valuesFile(t, {
    config,
    tls,
    networkPolicy: { monitors: [{ podSelector: {} }] },
    metrics: { serviceMonitor: { enabled: true } },
  });
  const { code, stdout, stderr } = helm(t, 'template', '123', chartDir, '--values', values);
  t.equal(code, 0, stderr);
  const manifests = manifestsOf(stdout);
  t.same(await schemaFaults(manifests), []);
  const deployment = one(manifests, 'Deployment');
  t.match(deployment['spec'], { selector: { matchLabels: { 'app.kubernetes.io/instance': '123' } } });
});
