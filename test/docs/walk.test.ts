/**
 * A newcomer walks through docs/deployment.md: each of its commands is run as it stands, by the real helm and kubectl,
 * against an API that keeps what they make. What a node would run of it is run here: the proxy with the config,
 * certificate and probes of the objects, and the pod of `helm test`.
 */
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import '../support/curl.js';
import { chartDir, one, type Manifest } from '../support/helm.js';
import { certificates } from '../support/certificates.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startKubernetesApi, type KubernetesApi } from '../support/kubernetes-api.js';
import { schemaFaults } from '../support/kubernetes.js';
import { pathWithKubectl } from '../support/kubectl.js';
import { projectDir } from '../support/project-dir.js';
import { request } from '../support/raw-client.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startServe } from '../support/serve-process.js';
import { sh } from '../support/sh.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { blockThatBegins, fencedBlocks } from './fenced-blocks.js';

const page = 'docs/deployment.md';

t.setTimeout(120_000);

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: number };
}

interface Container {
  readonly name: string;
  readonly image?: string;
  readonly args: readonly string[];
  readonly [probe: string]: unknown;
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly {
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
  }[];
}

interface Config {
  readonly listen: object;
  readonly probes: object;
  readonly issuers: { readonly core: object };
}

function dataOf(manifest: Manifest, file: string): string {
  return (manifest['data'] as Readonly<Record<string, string>>)[file] ?? '';
}

function podOf(objects: readonly Manifest[], kind = 'Deployment'): PodSpec {
  return (one(objects, kind)['spec'] as { readonly template: { readonly spec: PodSpec } }).template.spec;
}

/**
 * Runs lines of a page in a shell, with this build of the command, in a folder as a newcomer's: the repository, and
 * files of one's own.
 */
async function shell(
  api: KubernetesApi,
  cwd: string,
  line: string,
): Promise<{ readonly code: number; readonly output: string }> {
  const command = `sallyport() { '${process.execPath}' '${join(projectDir, 'dist/main.js')}' "$@"; }\n${line}`;
  const home = {
    HOME: cwd,
    HELM_CACHE_HOME: join(cwd, '.helm'),
    HELM_CONFIG_HOME: join(cwd, '.helm'),
    HELM_DATA_HOME: join(cwd, '.helm'),
  };
  return new Promise((resolve) => {
    const env = { ...process.env, ...home, PATH: pathWithKubectl(), KUBECONFIG: api.kubeconfig };
    execFile(sh, ['-ec', command], { cwd, env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` });
    });
  });
}

function newcomersFolder(): string {
  const cwd = tempDir(t);
  cpSync(join(projectDir, 'helm'), join(cwd, 'helm'), { recursive: true });
  const { certFile, keyFile } = certificates(t).server;
  cpSync(certFile, join(cwd, 'tls.crt'));
  cpSync(keyFile, join(cwd, 'tls.key'));
  writeFileSync(join(cwd, 'values.yaml'), blockThatBegins(page, 'image: {').text);
  return cwd;
}

/** Puts a file where kubelet would: behind a link that is exchanged as a whole. */
function mount(dir: string, version: number, text: string): void {
  const name = `..${String(version)}`;
  mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, name, 'sallyport.yaml'), text);
  symlinkSync(name, join(dir, '..next'));
  renameSync(join(dir, '..next'), join(dir, '..data'));
  if (version === 1) symlinkSync('..data/sallyport.yaml', join(dir, 'sallyport.yaml'));
}

t.test('beside a service: install, test, look, change the policy, each by the line of the page', async (t) => {
  const cwd = newcomersFolder();
  const ports = { proxy: 0, admin: 0, probes: 0 };
  const api = await startKubernetesApi(t, async (pod) => {
    const {
      containers: [container],
      volumes,
    } = pod['spec'] as PodSpec;
    const file = dataOf(one(api.objects(), 'ConfigMap', volumes[0]?.configMap?.name), 'sallyport.yaml');
    writeFileSync(
      join(cwd, 'test.yaml'),
      file.replace('host: orders-sallyport-metrics, port: 9902', `host: 127.0.0.1, port: ${String(ports.probes)}`),
    );
    const args =
      container?.args.map((word) => word.replace('/etc/sallyport/sallyport.yaml', join(cwd, 'test.yaml'))) ?? [];
    const [code] = (await once(
      spawn(process.execPath, [join(projectDir, 'dist/main.js'), ...args], { stdio: 'ignore' }),
      'exit',
    )) as [number | null];
    return code === 0 ? 'Succeeded' : 'Failed';
  });
  const run = async (line: string): Promise<string> => {
    const { code, output } = await shell(api, cwd, line);
    t.equal(code, 0, `${line}\n${code === 0 ? '' : output}`);
    return output;
  };

  const early = await shell(api, cwd, 'helm install orders helm/sallyport --namespace shop --values values.yaml');
  t.not(early.code, 0, 'without the namespace that the page has made first');
  await run(blockThatBegins(page, 'kubectl create namespace').text);
  const [install = '', test = '', forward = '', look = ''] = blockThatBegins(page, 'helm install').text.split('\n');
  t.match(await run(install), /Callers: +https:\/\/orders-sallyport\.shop\.svc:443/, 'the address of the page');
  const made = api.objects().filter(({ kind }) => kind !== 'Namespace' && kind !== 'Secret');
  t.same(await schemaFaults(made), []);

  const receiver = await startUpstreamServer(t);
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const {
    volumes,
    initContainers: [sidecar] = [],
    containers: [service],
  } = podOf(made);
  const secret = volumes.find((volume) => volume.secret !== undefined)?.secret?.secretName;
  const tls = one(api.objects(), 'Secret', secret);
  for (const name of ['tls.crt', 'tls.key']) {
    writeFileSync(join(cwd, name), Buffer.from(dataOf(tls, name), 'base64'), { mode: 0o600 });
  }
  /** The config of the ConfigMap, with addresses of this machine in the place of the cluster's. */
  const configHere = (): string => {
    const { listen, probes, issuers, ...rest } = parse(
      dataOf(one(api.objects(), 'ConfigMap', 'orders-sallyport'), 'sallyport.yaml'),
    ) as Config;
    return stringify({
      ...rest,
      admin: { port: 0 },
      upstream: { url: receiver.url },
      probes: { ...probes, host: '127.0.0.1', port: 0 },
      listen: {
        ...listen,
        host: '127.0.0.1',
        port: 0,
        tls: { cert_file: join(cwd, 'tls.crt'), key_file: join(cwd, 'tls.key') },
      },
      issuers: { core: { ...issuers.core, jwks_url: jwks.url } },
    });
  };
  const etc = join(cwd, 'etc');
  mount(etc, 1, configHere());
  t.same(sidecar?.args, ['serve', '--config', '/etc/sallyport/sallyport.yaml'], 'what is run here');
  const serve = startServe(t, join(etc, 'sallyport.yaml'));
  for (const name of ['proxy', 'admin', 'probes'] as const) ports[name] = await serve.port(name);

  t.match(await run(test), /Phase: +Succeeded/);
  const probe = async ({ httpGet }: Probe): Promise<number> =>
    (await request(ports.probes, { path: httpGet?.path ?? '/' })).status;
  for (const container of [sidecar, service]) {
    for (const name of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const found = container?.[name] as Probe | undefined;
      if (found === undefined) continue;
      t.equal(found.httpGet?.port, 9902);
      t.equal(await probe(found), 200, `${container?.name ?? ''}: ${name}`);
    }
  }
  const [, target = '', port = ''] = /port-forward deploy\/(\S+) (\d+) &$/.exec(forward) ?? [];
  t.equal(one(made, 'Deployment').metadata.name, target, 'what is forwarded to');
  t.match(parse(dataOf(one(made, 'ConfigMap', 'orders-sallyport'), 'sallyport.yaml')), {
    admin: { host: '127.0.0.1', port: Number(port) },
  });
  t.match(JSON.parse(await run(look.replace(port, String(ports.admin)))), { version: /^\d/ }, 'what /status says');

  const ask = async (path: string): Promise<number> => {
    const headers = { Host: 'orders-sallyport.shop.svc', Authorization: `Bearer ${mintToken({ key })}` };
    return (await request(ports.proxy, { path, headers }, { tls: { rejectUnauthorized: false } })).status;
  };
  t.same([await ask('/orders'), await ask('/orders/1')], [200, 403]);
  writeFileSync(
    join(cwd, 'values.yaml'),
    readFileSync(join(cwd, 'values.yaml'), 'utf8').replace('path: /orders,', 'path: [/orders, "/orders/{id}"],'),
  );
  t.match(await run(blockThatBegins(page, 'helm template').text), /sallyport\.yaml: ok/, 'what is to be checked first');
  mount(etc, 2, configHere());
  await until('the new policy is in force', async () => (await ask('/orders/1')) === 200);
  t.ok(serve.isRunning(), 'without a restart');
  const annotations = (objects: readonly Manifest[]): unknown =>
    (one(objects, 'Deployment')['spec'] as { template: { metadata: unknown } }).template.metadata;
  t.same(annotations(api.objects()), annotations(made), 'nor has the cluster a reason for one');
});

t.test("in a pod that is somebody else's: the chart of the page, file by file, with its dependency", async (t) => {
  const cwd = newcomersFolder();
  const api = await startKubernetesApi(t, async () => 'Succeeded');
  await shell(api, cwd, 'kubectl create namespace shop');
  cpSync(chartDir, join(cwd, 'sallyport'), { recursive: true });
  const files = fencedBlocks(page).flatMap(({ text }) => {
    const [, path] = /^# (orders\/\S+)\n/.exec(text) ?? [];
    return path === undefined ? [] : [{ path, text }];
  });
  t.same(
    files.map(({ path }) => path),
    ['orders/Chart.yaml', 'orders/values.yaml', 'orders/templates/deployment.yaml'],
  );
  for (const { path, text } of files) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const { code, output } = await shell(api, cwd, blockThatBegins(page, 'helm dependency').text);
  t.equal(code, 0, output);
  t.same(await schemaFaults(api.objects().filter(({ kind }) => kind !== 'Namespace')), []);
  const { initContainers = [], containers } = podOf(api.objects());
  t.match(initContainers, [{ name: 'sallyport', restartPolicy: 'Always' }, { name: 'migrate' }]);
  t.match(containers, [{ name: 'orders', image: 'orders:1.4.0', lifecycle: { preStop: { sleep: { seconds: 10 } } } }]);
  const selectors = api
    .objects()
    .filter(({ kind }) => kind === 'Service')
    .map(({ spec }) => (spec as { readonly selector: object }).selector);
  t.same(selectors, [{ app: 'orders' }, { app: 'orders' }], 'callers and metrics find the pods');
});

t.test('without Helm: kubectl takes the manifests', async (t) => {
  const cwd = newcomersFolder();
  const api = await startKubernetesApi(t, async () => 'Succeeded');
  await shell(api, cwd, blockThatBegins(page, 'kubectl create namespace').text);
  const { code, output } = await shell(api, cwd, blockThatBegins(page, 'kubectl apply').text);
  t.equal(code, 0, output);
  t.same(output.match(/created$/gm)?.length, 7);
});
