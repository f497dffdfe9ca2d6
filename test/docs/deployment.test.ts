/** What docs/deployment.md tells to write works as it stands. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { validateConfig } from '../../src/config/load/validate-config.js';
import { accept } from '../../src/lib/result.js';
import { parseDockerfile } from '../image/dockerfile.js';
import { chartDir, helm, manifestsOf, one, render, type Manifest, type Values } from '../support/helm.js';
import { schemaFaults, unknownFields } from '../support/kubernetes.js';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';

function read(path: string): string {
  return readFileSync(join(projectDir, path), 'utf8');
}

/** Fenced blocks of a page in one language, in order. */
function blocks(page: string, language: string): readonly string[] {
  return [...read(page).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, text = '']) => text,
  );
}

function errorsOf(config: string): readonly unknown[] {
  const readFile = (): ReturnType<typeof accept<string>> => accept('secret');
  return validateConfig(config, { file: 'sallyport.yaml', folder: '/', env: {}, readFile }).problems;
}

const deployment = blocks('docs/deployment.md', 'yaml').map((text) => parse(text) as Values);
const first = deployment[0] ?? {};

/** Without what only Helm needs. */
function plain(manifests: readonly Manifest[]): readonly Manifest[] {
  return manifests
    .filter(({ metadata }) => !('annotations' in metadata && 'helm.sh/hook' in (metadata.annotations as object)))
    .map((manifest) => {
      const {
        'helm.sh/chart': _chart,
        'app.kubernetes.io/managed-by': _manager,
        ...labels
      } = manifest.metadata.labels ?? {};
      return { ...manifest, metadata: { ...manifest.metadata, labels } };
    });
}

function renderAs(release: string, values: Values): readonly Manifest[] {
  const file = join(tempDir(t), 'values.yaml');
  writeFileSync(file, stringify(values));
  const { code, stdout, stderr } = helm(t, 'template', release, chartDir, '--namespace', 'shop', '--values', file);
  if (code !== 0) throw new Error(stderr);
  return manifestsOf(stdout);
}

const walked = renderAs('orders', first);

t.test("a newcomer's walk: each object that the page promises is there, and does what it says", async (t) => {
  t.same(await schemaFaults(walked), []);
  t.same(unknownFields(walked), []);
  for (const [, kind = '', name = ''] of read('docs/deployment.md').matchAll(/^\| ([A-Z]\w+) `([\w-]+)` \|/gm)) {
    t.ok(
      walked.some((manifest) => manifest.kind === kind && manifest.metadata.name === name),
      `${kind} ${name}`,
    );
  }
  const { spec } = (
    one(walked, 'Deployment')['spec'] as { template: { spec: Readonly<Record<string, readonly Values[]>> } }
  ).template;
  t.match(spec['initContainers']?.[0], { name: 'sallyport', restartPolicy: 'Always' });
  t.match(spec['containers']?.[0], { name: 'orders', env: [{ name: 'HOST', value: '127.0.0.1' }, { name: 'PORT' }] });
  t.match(one(walked, 'Service', 'orders-sallyport')['spec'], { ports: [{ port: 443, targetPort: 8443 }] });
  t.match(one(walked, 'Service', 'metrics')['spec'], { ports: [{ port: 9902, targetPort: 9902 }] });
  const { 'sallyport.yaml': config = '' } = one(walked, 'ConfigMap', 'orders-sallyport')['data'] as Readonly<
    Record<string, string>
  >;
  t.same(errorsOf(config), []);
  t.match(parse(config), {
    admin: { port: 9901 },
    listen: { port: 8443 },
    probes: { port: 9902, app: { live: '/healthz', ready: '/ready' } },
  });
  t.ok(
    walked.some(({ kind, metadata }) => kind === 'Pod' && metadata.name.includes('test')),
    'helm test has something to run',
  );
});

t.test('plain manifests are the first example, rendered', async (t) => {
  const text = plain(walked)
    .map((manifest) => stringify(manifest, { lineWidth: 150 }))
    .join('---\n');
  const path = join(projectDir, 'helm/manifests/orders.yaml');
  if (process.env['SALLYPORT_GOLDEN'] === 'write') writeFileSync(path, text);
  t.equal(text, readFileSync(path, 'utf8'), 'rewrite it with SALLYPORT_GOLDEN=write where the change is meant');
});

t.test('values for an ingress', async (t) => {
  const ingress = deployment.find((block) => 'networkPolicy' in block && 'config' in block) ?? {};
  const base = first['config'] as Values;
  const manifests = render(t, { ...first, ...ingress, config: { ...base, ...(ingress['config'] as Values) } });
  t.match(JSON.stringify(one(manifests, 'NetworkPolicy')), 'ingress-nginx');
  t.match((one(manifests, 'ConfigMap', 'sallyport')['data'] as Values)['sallyport.yaml'], '10.42.0.0/16');
});

t.test('values for callers from outside of the cluster', async (t) => {
  const outside = deployment.find((block) => 'service' in block) ?? {};
  const manifests = render(t, { ...first, ...outside });
  const ranges = (outside['networkPolicy'] as { readonly callerCidrs: readonly string[] }).callerCidrs;
  for (const cidr of ranges) {
    t.match(JSON.stringify(one(manifests, 'NetworkPolicy')), JSON.stringify({ ipBlock: { cidr } }));
  }
  t.match(one(manifests, 'Service', 'sallyport')['spec'], {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    loadBalancerSourceRanges: ranges,
  });
});

t.test('arguments of docker build are those of the Dockerfile', async (t) => {
  const known = new Set(
    parseDockerfile(read('Dockerfile'))
      .filter(({ name }) => name === 'ARG')
      .map(({ words }) => words.split('=')[0] ?? ''),
  );
  for (const page of ['docs/releasing.md', 'Dockerfile']) {
    const used = [...read(page).matchAll(/--build-arg (\w+)=/g)].map(([, name = '']) => name);
    t.not(used.length, 0, page);
    for (const name of used) t.ok(known.has(name), `${page}: ${name}`);
  }
  const explained = [...read('docs/image.md').matchAll(/^\| (`[A-Z_`, ]+) \|/gm)].flatMap(([, names = '']) =>
    names.replaceAll('`', '').split(', '),
  );
  // The version is that of the tree, which nobody has to give.
  t.same(explained.sort(), [...known].filter((name) => name !== 'VERSION').sort());
});
