import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { chartReadme, chartValues } from '../../src/config/docs/chart-reference.js';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { accept } from '../../src/lib/result.js';
import { exposureOf } from '../../src/lib/secret-file-access.js';
import { fencedBlocks } from '../docs/fenced-blocks.js';
import {
  chartDir,
  helm,
  manifestsOf,
  notes,
  one,
  parentChart,
  render,
  valuesFile,
  type HelmRun,
  type Manifest,
  type Values,
} from '../support/helm.js';
import { schemaFaults, unknownFields } from '../support/kubernetes.js';
import { projectDir } from '../support/project-dir.js';
import { fileOf, openingsOf, templateOf, type PodSpec } from './objects.js';
import { config, matrix, refused, tls } from './values.js';

t.setTimeout(120_000);

interface SecretVolume {
  readonly name: string;
  readonly secret?: { readonly defaultMode?: number };
}

const rendered = matrix.map(({ name, values }) => ({ name, manifests: render(t, values) }));

t.test('helm lint --strict', async (t) => {
  for (const { name, values } of matrix) {
    const { code, stdout, stderr } = helm(t, 'lint', '--strict', chartDir, '--values', valuesFile(t, values));
    t.equal(code, 0, `${name}: ${stdout}${stderr}`);
  }
});

t.test('everything that is rendered has the schema of Kubernetes', async (t) => {
  for (const { name, manifests } of rendered) {
    t.ok(manifests.length > 1, name);
    t.same(await schemaFaults(manifests), [], name);
  }
  t.same(unknownFields(rendered.flatMap(({ manifests }) => manifests)), []);
  const deployment = one(rendered[0]?.manifests ?? [], 'Deployment');
  t.not((await schemaFaults([{ ...deployment, spec: { replicas: 'two' } }])).length, 0, 'a wrong type is found');
  t.not(
    unknownFields([{ ...deployment, spec: { ...(deployment['spec'] as object), strategi: {} } }]).length,
    0,
    'a misspelt field is found',
  );
});

t.test('the config inside is one that Sallyport takes', async (t) => {
  const readFile = (): ReturnType<typeof accept<string>> => accept('secret');
  for (const { name, manifests } of rendered) {
    const files = manifests
      .filter(({ kind, data }) => kind === 'ConfigMap' && 'sallyport.yaml' in (data as object))
      .map(fileOf);
    for (const file of files) {
      const { problems } = validateConfig(file, {
        file: 'sallyport.yaml',
        folder: '/',
        env: { GRACE: '25s', HOST: '10.0.0.7' },
        readFile,
      });
      // The pod of `helm test` reads what this config names, from outside.
      t.same(
        problems.filter(({ message }) => !message.includes('admin.host is')),
        [],
        name,
      );
    }
  }
});

t.test('files of secrets are such as check asks for: kubelet makes them root’s, with the group of the pod', (t) => {
  const names = ['alone', 'everything on'];
  const seen: string[] = [];
  for (const { values } of matrix.filter(({ name }) => names.includes(name))) {
    const { stdout } = helm(t, 'template', 'shop', chartDir, '--values', valuesFile(t, values));
    // As Kubernetes reads it: 0440 is octal in YAML 1.1 alone.
    const deployment = parseAllDocuments(stdout, { version: '1.1' })
      .map((document) => document.toJS() as Manifest)
      .find(({ kind }) => kind === 'Deployment');
    if (deployment === undefined) throw new Error('no deployment');
    for (const { name, secret } of (templateOf(deployment).spec.volumes ?? []) as unknown as readonly SecretVolume[]) {
      if (secret === undefined) continue;
      seen.push(name);
      // The bits that kubelet adds for an fsGroup, whatever the mode is.
      t.equal(exposureOf({ mode: (secret.defaultMode ?? 0o644) | 0o440, owner: 0 }, 65_532), null, name);
    }
  }
  t.same(seen, ['sallyport-tls', 'sallyport-tls', 'sallyport-secret-0']);
  t.end();
});

t.test('values that make no sense are refused, in words', async (t) => {
  for (const { name, values, says } of refused) {
    const { code, stderr } = helm(t, 'template', 'shop', chartDir, '--values', valuesFile(t, values));
    t.equal(code, 1, name);
    t.match(stderr, says, name);
  }
});

/** What the restricted Pod Security level asks of a container, and a root that nobody writes to. */
const restricted = {
  runAsNonRoot: true,
  readOnlyRootFilesystem: true,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

t.test("Sallyport's own containers have the restricted Pod Security level, in whatever pod", async (t) => {
  for (const { name, manifests } of rendered) {
    for (const manifest of manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Pod')) {
      const spec = manifest.kind === 'Pod' ? (manifest['spec'] as PodSpec) : templateOf(manifest).spec;
      t.equal(spec.automountServiceAccountToken, false, name);
      const ours = [...spec.containers, ...(spec.initContainers ?? [])].filter((container) =>
        ['sallyport', 'health'].includes(container.name),
      );
      t.equal(ours.length, 1, name);
      for (const { securityContext } of ours) t.match(securityContext, restricted, name);
      t.notOk(
        (spec.volumes ?? []).some((volume) => 'hostPath' in volume),
        name,
      );
    }
  }
});

// Most legacy images run as root or write to their root: unasked, the restricted level would stop them.
t.test("the service's container gets no security context that nobody asked for", async (t) => {
  const container = { name: 'orders', image: 'orders:1' };
  const podOf = (more: Values): PodSpec =>
    templateOf(one(render(t, { config, tls, receiver: { container: { ...container, ...more } } }), 'Deployment')).spec;
  const told = (values: Values): string => notes(t, { config, tls, ...values });
  const silent = podOf({});
  t.notOk('securityContext' in (silent.containers[0] ?? {}), 'as its image says');
  t.same(silent.securityContext, { fsGroup: 65532 }, 'nor by way of the pod');
  t.match(
    told({ receiver: { container } }),
    /WARNING: receiver\.container has no securityContext[^]*readOnlyRootFilesystem: true/,
    'and the operator is told',
  );
  t.same(podOf({ securityContext: restricted }).containers[0]?.securityContext, restricted);
  t.same(podOf({ securityContext: {} }).containers[0]?.securityContext, {});
  for (const securityContext of [restricted, {}]) {
    t.notMatch(
      told({ receiver: { container: { ...container, securityContext } } }),
      'WARNING',
      'who says it is told nothing',
    );
  }
  t.notMatch(told({}), 'WARNING', 'there is no container of a service');
  const shown = /securityContext: (\{ run.*\})/.exec(told({ receiver: { container } }))?.[1] ?? '';
  t.same(parse(shown), restricted, 'what it advises is the restricted level');
});

t.test('beside the service: starts before it, ends after it, and kubelet asks through it', async (t) => {
  const manifests = rendered.find(({ name }) => name === 'beside the service')?.manifests ?? [];
  const { spec } = templateOf(one(manifests, 'Deployment'));
  t.match(spec.initContainers?.[0], {
    name: 'sallyport',
    restartPolicy: 'Always',
    startupProbe: { httpGet: { path: '/livez', port: 9902 } },
  });
  t.match(spec.containers, [
    {
      name: 'orders',
      lifecycle: { preStop: { sleep: { seconds: 10 } } },
      startupProbe: { httpGet: { path: '/app-probe/startup', port: 9902 } },
      livenessProbe: { httpGet: { path: '/app-probe/live', port: 9902 } },
      readinessProbe: { httpGet: { path: '/app-probe/ready', port: 9902 } },
    },
  ]);
  t.match(parse(fileOf(one(manifests, 'ConfigMap', 'sallyport'))), {
    probes: { app: { live: '/healthz', ready: '/ready' } },
    shutdown: { delay: '0s' },
  });
  const says = rendered.find(({ name }) => name === 'beside a service that says it all itself')?.manifests ?? [];
  t.match(
    templateOf(one(says, 'Deployment')).spec.containers[0],
    {
      lifecycle: { preStop: { exec: { command: ['/drain'] } } },
      livenessProbe: { exec: { command: ['/alive'] } },
      securityContext: { runAsUser: 1000 },
    },
    'what the service says itself counts',
  );
});

t.test('there is time to end, and ports are open for callers and probes only', async (t) => {
  for (const { name, manifests } of rendered) {
    const deployment = manifests.find(({ kind }) => kind === 'Deployment');
    if (deployment !== undefined) {
      t.ok((templateOf(deployment).spec.terminationGracePeriodSeconds ?? 0) > 5 + 25 + 10, name);
    }
    const policy = manifests.find(({ kind }) => kind === 'NetworkPolicy');
    if (policy === undefined) continue;
    const ingress = openingsOf(policy);
    const isCalled = !name.startsWith('the calling side alone');
    const open = [...new Set(ingress.flatMap(({ ports }) => ports.map(({ port }) => port)))];
    t.same(open, isCalled ? [8443, 9902] : [9902], name);
    t.ok(
      ingress.every(({ from }) => from.length > 0),
      `${name}: an empty list of peers would be everybody`,
    );
  }
});

t.test('a strategy of another type has nothing of the default one, which Kubernetes would refuse', (t) => {
  const strategyOf = (updateStrategy: Values): unknown =>
    (one(render(t, { config, tls, updateStrategy }), 'Deployment')['spec'] as { readonly strategy?: unknown }).strategy;
  t.same(strategyOf({ type: 'Recreate' }), { type: 'Recreate' });
  t.same(strategyOf({ rollingUpdate: { maxSurge: 2 } }), { rollingUpdate: { maxUnavailable: 0, maxSurge: 2 } });
  t.end();
});

t.test('helm test gets through, whoever else may read metrics', async (t) => {
  const manifests = rendered.find(({ name }) => name === 'everything on')?.manifests ?? [];
  const peers = openingsOf(one(manifests, 'NetworkPolicy'))
    .filter(({ ports }) => ports.some(({ port }) => port === 9902))
    .flatMap(({ from }) => from);
  t.equal(peers.length, 2, 'monitors, and the test');
  const { labels } = one(manifests, 'Pod', 'test-ready').metadata;
  t.same(peers[1], { podSelector: { matchLabels: labels } });
});

t.test('autoscaling looks at each container by itself, against what it asks for', async (t) => {
  const autoscaling = { enabled: true };
  const watched = (container: Values): readonly unknown[] => {
    const manifests = render(t, {
      config,
      tls,
      autoscaling,
      receiver: { container: { name: 'orders', image: 'orders:1', ...container } },
    });
    return (one(manifests, 'HorizontalPodAutoscaler')['spec'] as { readonly metrics: readonly unknown[] }).metrics;
  };
  const metric = (container: string): object => ({
    type: 'ContainerResource',
    containerResource: { name: 'cpu', container, target: { type: 'Utilization', averageUtilization: 70 } },
  });
  t.same(watched({}), [metric('sallyport')], 'a service without a request has no percents');
  t.same(watched({ resources: { requests: { cpu: '1' } } }), [metric('sallyport'), metric('orders')]);
});

t.test('policy is reloaded from the ConfigMap: only what is read at start restarts pods', async (t) => {
  const sums = (values: object): string => {
    const manifests = render(t, { tls, config: { ...config, ...values } });
    return templateOf(one(manifests, 'Deployment')).metadata.annotations['checksum/start'] ?? '';
  };
  const before = sums({});
  t.equal(
    sums({ routes: [{ name: 'other', methods: ['GET'], path: '/', access: 'public' }], mode: 'shadow' }),
    before,
    'routes and mode',
  );
  for (const values of [
    { listen: { max_in_flight: 100 } },
    { admin: { console: false } },
    { probes: { app: { live: '/live' } } },
    { sessions: { cookie_domain: 'example.com' } },
    { store: { memory: {} } },
    { decide: { port: 9100 } },
    { workers: 2 },
  ]) {
    t.not(sums(values), before, Object.keys(values).join());
  }
  const session = { claims: {} };
  const sessions = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' };
  const basket = { name: 'basket', methods: ['GET'], path: '/basket', accept: ['session'], session };
  const orders = { name: 'orders', methods: ['GET'], path: '/orders', access: 'public' };
  const unused = sums({ sessions, routes: [orders] });
  const used = sums({ sessions, routes: [orders, basket] });
  t.not(used, unused, 'the first route that accepts sessions: a reload refuses it');
  t.equal(sums({ sessions, routes: [basket, { ...basket, name: 'another' }] }), used, 'the next ones');
  const { spec } = templateOf(one(rendered[0]?.manifests ?? [], 'Deployment'));
  t.notMatch(stringify(spec), 'subPath', 'a file mounted by subPath would never change');
});

t.test('a foreign Deployment takes Sallyport in by one include: as written down in golden/', async (t) => {
  const parent = parentChart(t);
  const { code, stdout, stderr } = helm(
    t,
    'template',
    'shop',
    parent,
    '--namespace',
    'shop',
    '--set',
    'sallyport.image.tag=golden',
  );
  t.equal(code, 0, stderr);
  const manifests = manifestsOf(stdout);
  t.same(await schemaFaults(manifests), []);
  t.same(unknownFields(manifests), []);
  const golden = join(projectDir, 'test/helm/golden/orders.yaml');
  const text = stringify(one(manifests, 'Deployment'), { sortMapEntries: true });
  if (process.env['SALLYPORT_GOLDEN'] === 'write') writeFileSync(golden, text);
  t.equal(text, readFileSync(golden, 'utf8'), 'rewrite it with SALLYPORT_GOLDEN=write where the change is meant');
  t.same(manifests.filter(({ kind }) => kind === 'Deployment').length, 1, 'no pod of its own');
});

t.test('a foreign pod is replaced for what is read at start, and for nothing else, by an include', (t) => {
  const sumOf = (...set: readonly string[]): string => {
    const { code, stdout, stderr } = helm(t, 'template', 'shop', parentChart(t), ...set);
    t.equal(code, 0, stderr);
    const { annotations } = templateOf(one(manifestsOf(stdout), 'Deployment')).metadata;
    return annotations['checksum/start'] ?? '';
  };
  const before = sumOf();
  t.match(before, /^[0-9a-f]{64}$/);
  t.not(sumOf('--set', 'sallyport.config.listen.dpop.origins={https://orders.example.com}'), before);
  t.equal(sumOf('--set', 'sallyport.config.mode=shadow'), before);
  t.end();
});

t.test('a pod of theirs has the time that Sallyport needs, or is not rendered', (t) => {
  const said = (line: string, ...set: readonly string[]): HelmRun => {
    const parent = parentChart(t);
    const file = join(parent, 'templates/deployment.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('volumes:\n', `${line}\nvolumes:\n`));
    return helm(t, 'template', 'shop', parent, ...set);
  };
  const short =
    /sallyport\.podSpec: terminationGracePeriodSeconds: (20|39) is less than 40 s: .*preStopSleepSeconds and 5 s in which/;
  for (const seconds of [20, 39]) {
    t.match(said(`terminationGracePeriodSeconds: ${seconds}`), { code: 1, stderr: short });
  }
  for (const [line, seconds] of [
    ['terminationGracePeriodSeconds: 40', 40],
    ['terminationGracePeriodSeconds:', 60],
  ] as const) {
    const { code, stdout, stderr } = said(line);
    t.equal(code, 0, stderr);
    t.equal(templateOf(one(manifestsOf(stdout), 'Deployment')).spec.terminationGracePeriodSeconds, seconds, line);
  }
  const slow = ['--set', 'sallyport.config.shutdown.grace=90s'];
  t.equal(said('terminationGracePeriodSeconds: 120', ...slow).code, 0, 'the values have 60, and the pod has not');
  t.match(said('terminationGracePeriodSeconds:', ...slow), { code: 1, stderr: /podSpec: .*: 60 is less than 105 s/ });
  t.end();
});

t.test('image and chart have the version of package.json', async (t) => {
  const { version } = JSON.parse(readFileSync(join(projectDir, 'package.json'), 'utf8')) as { version: string };
  t.match(parse(readFileSync(join(chartDir, 'Chart.yaml'), 'utf8')), { version, appVersion: version });
});

t.test('every value is explained and has a schema', async (t) => {
  const text = readFileSync(join(chartDir, 'values.yaml'), 'utf8');
  const schema = JSON.parse(readFileSync(join(chartDir, 'values.schema.json'), 'utf8')) as Schema;
  const missing = (
    values: Readonly<Record<string, unknown>>,
    { properties = {} }: Schema,
    path: string,
  ): readonly string[] =>
    Object.entries(values).flatMap(([key, value]) => {
      const known = properties[key];
      if (known === undefined) return [`${path}${key}`];
      if (known.properties === undefined || typeof value !== 'object' || value === null) return [];
      return missing(value as Record<string, unknown>, known, `${path}${key}.`);
    });
  t.same(missing(parse(text) as Record<string, unknown>, schema, ''), [], 'without a schema');
  t.same(unexplained(text), []);
  t.same(unexplained('# -- Said.\na: 1\nb:\n  # -- Said.\n  c: 1\n  d: 1\n'), ['b.d']);
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Values without a comment that begins with `--`, on themselves or on the map that they are in. */
function unexplained(text: string): readonly string[] {
  return chartValues(text)
    .filter(({ meaning }) => meaning === '')
    .map(({ path }) => path);
}

t.test("the table of the chart's README is that of values.yaml", async (t) => {
  const values = readFileSync(join(chartDir, 'values.yaml'), 'utf8');
  const readme = readFileSync(join(chartDir, 'README.md'), 'utf8');
  t.equal(readme, chartReadme(readme, values), 'npm run generate');
  t.ok(chartValues(values).length > 80);
  const [row] = chartValues('# A title.\n\n# -- What it\n# is.\na: { b: "1" }\n');
  t.same(row, { path: 'a', standard: '{ b: "1" }', meaning: 'What it is.' });
  t.throws(() => chartReadme('# Without marks', values), /marks of the table/);
  for (const { path } of chartValues(values)) {
    t.ok(path.split('.').reduce<unknown>(valueAt, parse(values)) !== undefined, path);
  }
});

function valueAt(tree: unknown, key: string): unknown {
  return typeof tree === 'object' && tree !== null
    ? Object.entries(tree).find(([name]) => name === key)?.[1]
    : undefined;
}

t.test("the examples of the chart's README work", async (t) => {
  const blocks = fencedBlocks('helm/sallyport/README.md')
    .filter(({ language }) => language === 'yaml')
    .map(({ text }) => parse(text) as Values);
  t.equal(blocks.length, 9);
  const [least = {}] = blocks;
  for (const block of blocks) {
    const merged = {
      ...least,
      ...block,
      config: { ...(least['config'] as Values), ...(block['config'] as Values | undefined) },
    };
    const manifests = render(t, merged);
    t.same([await schemaFaults(manifests), unknownFields(manifests)], [[], []]);
    t.notMatch(notes(t, merged), 'WARNING');
  }
});
