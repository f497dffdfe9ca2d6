/**
 * As much of the Kubernetes API as `helm install` and `kubectl apply` need: objects of a few kinds, kept in memory.
 * Nothing is scheduled.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import type { Manifest } from './helm.js';
import { readProtobuf } from './kubernetes-protobuf.js';
import { listen } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export interface KubernetesApi {
  /** For `KUBECONFIG`. */
  readonly kubeconfig: string;
  /** What was made, without Helm's own records. */
  readonly objects: () => readonly Manifest[];
  readonly url: string;
}

/** Plays kubelet: what becomes of a pod that was made on its own, as the helper of a chart's test is. */
export type RunPod = (pod: Manifest) => Promise<'Succeeded' | 'Failed'>;

interface Kind {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
}

type Tree = Readonly<Record<string, unknown>>;
type Answer = readonly [status: number, body: unknown];

const kinds: readonly Kind[] = [
  { group: 'v1', kind: 'Namespace', plural: 'namespaces' },
  { group: 'v1', kind: 'Secret', plural: 'secrets' },
  { group: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  { group: 'v1', kind: 'Service', plural: 'services' },
  { group: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts' },
  { group: 'v1', kind: 'Pod', plural: 'pods' },
  { group: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  { group: 'networking.k8s.io/v1', kind: 'NetworkPolicy', plural: 'networkpolicies' },
  { group: 'policy/v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets' },
];

const verbs = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];
const groups = [...new Set(kinds.map(({ group }) => group))];

/** Starts an API that ends with the test. */
export async function startKubernetesApi(t: Scope, runPod: RunPod): Promise<KubernetesApi> {
  const objects = new Map<string, Manifest>();
  const watchers = new Set<{ readonly prefix: string; readonly tell: (type: string, object: Manifest) => void }>();
  let version = 0;

  const server = createServer((req, res) => {
    void answer(req, res).then((response) => {
      if (response !== null) send(res, ...response);
    });
  });
  const { port } = await listen(t, server);
  const url = `http://127.0.0.1:${String(port)}`;
  const kubeconfig = join(tempDir(t), 'kubeconfig');
  writeFileSync(
    kubeconfig,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      clusters: [{ name: 'test', cluster: { server: url } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      users: [{ name: 'test', user: {} }],
    }),
  );
  return {
    kubeconfig,
    url,
    objects: () => [...objects.values()].filter((object) => object['type'] !== 'helm.sh/release.v1'),
  };

  /** Status and body; null where a watch goes on. */
  async function answer(req: IncomingMessage, res: ServerResponse): Promise<Answer | null> {
    const { pathname, searchParams } = new URL(req.url ?? '/', url);
    const found = discovery(pathname);
    if (found !== null) return [200, found];
    const at = /^\/(?:api|apis)\/(v1|[\w.]+\/v1)\/(?:namespaces\/([\w-]+)\/)?([a-z]+)(?:\/([\w.-]+))?$/.exec(pathname);
    const kind = kinds.find(({ group, plural }) => group === at?.[1] && plural === at[3]);
    if (at === null || kind === undefined) return [404, status(404, 'NotFound')];
    const [, , namespace = '', , name] = at;
    const prefix = `${kind.group}/${kind.plural}/${namespace}/`;
    if (req.method === 'GET' && name === undefined) {
      return list(res, kind, namespace === '' ? `${kind.group}/${kind.plural}/` : prefix, searchParams);
    }
    const given = await bodyOf(req);
    const key = prefix + (name ?? given?.metadata.name ?? '');
    const old = objects.get(key);
    if (req.method === 'POST' && old !== undefined) return [409, status(409, 'AlreadyExists')];
    const isApplied = req.headers['content-type']?.startsWith('application/apply-patch') === true;
    if (req.method !== 'POST' && !isApplied && old === undefined) return [404, status(404, 'NotFound')];
    if (namespace !== '' && !objects.has(`v1/namespaces//${namespace}`)) {
      return [404, status(404, 'NotFound', `namespaces "${namespace}" not found`)];
    }
    if (req.method === 'GET') return [200, old];
    if (req.method === 'DELETE') {
      objects.delete(key);
      tell('DELETED', key, old);
      return [200, status(200, 'Success')];
    }
    const kept = keep(
      key,
      merge(old ?? {}, { ...given, apiVersion: kind.group, kind: kind.kind }) as Manifest,
      namespace,
    );
    if (kind.kind === 'Pod' && old === undefined) {
      void runPod(kept).then((phase) => keep(key, { ...kept, status: { phase } }, namespace));
    }
    return [old === undefined ? 201 : 200, kept];
  }

  function keep(key: string, object: Manifest, namespace: string): Manifest {
    version += 1;
    const metadata = {
      uid: key,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...object.metadata,
      ...(namespace === '' ? {} : { namespace }),
      resourceVersion: String(version),
    };
    const type = objects.has(key) ? 'MODIFIED' : 'ADDED';
    const kept = { ...object, metadata };
    objects.set(key, kept);
    tell(type, key, kept);
    return kept;
  }

  function tell(type: string, key: string, object: Manifest | undefined): void {
    if (object !== undefined) {
      for (const watcher of watchers) if (key.startsWith(watcher.prefix)) watcher.tell(type, object);
    }
  }

  function list(res: ServerResponse, { group, kind }: Kind, prefix: string, query: URLSearchParams): Answer | null {
    const wanted = (object: Manifest): boolean =>
      matches(object, query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '');
    const items = [...objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(([, object]) => object)
      .filter(wanted);
    if (query.get('watch') === null) {
      return [200, { apiVersion: group, kind: `${kind}List`, metadata: { resourceVersion: String(version) }, items }];
    }
    res.writeHead(200, { 'content-type': 'application/json' });
    const since = Number(query.get('resourceVersion') ?? 0);
    const event = (type: string, object: Manifest): void => {
      if (wanted(object)) res.write(`${JSON.stringify({ type, object })}\n`);
    };
    for (const object of items) {
      if (Number((object.metadata as unknown as Tree)['resourceVersion']) > since) event('ADDED', object);
    }
    if (query.get('sendInitialEvents') === 'true') {
      // Ends the list that such a watch begins with.
      const metadata = {
        name: '',
        resourceVersion: String(version),
        annotations: { 'k8s.io/initial-events-end': 'true' },
      };
      res.write(`${JSON.stringify({ type: 'BOOKMARK', object: { apiVersion: group, kind, metadata } })}\n`);
    }
    const watcher = { prefix, tell: event };
    watchers.add(watcher);
    res.on('close', () => watchers.delete(watcher));
    return null;
  }
}

/**
 * What there is: versions, groups, kinds; and OpenAPI as far as clients ask whether the server looks for unknown fields
 * itself.
 */
function discovery(path: string): Tree | null {
  const resources = (group: string): readonly Tree[] =>
    kinds
      .filter((kind) => kind.group === group)
      .map(({ kind, plural }) => ({
        name: plural,
        singularName: kind.toLowerCase(),
        namespaced: kind !== 'Namespace',
        kind,
        verbs,
      }));
  const versionOf = (group: string): Tree => ({ groupVersion: group, version: 'v1' });
  const place = (group: string): string => (group === 'v1' ? 'api/v1' : `apis/${group}`);
  if (path === '/version') return { major: '1', minor: '34', gitVersion: 'v1.34.0' };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') {
    return {
      kind: 'APIGroupList',
      apiVersion: 'v1',
      groups: groups
        .filter((group) => group !== 'v1')
        .map((group) => ({
          name: group.split('/')[0],
          versions: [versionOf(group)],
          preferredVersion: versionOf(group),
        })),
    };
  }
  if (path === '/openapi/v3') {
    return {
      paths: Object.fromEntries(
        groups.map((group) => [place(group), { serverRelativeURL: `/openapi/v3/${place(group)}` }]),
      ),
    };
  }
  const group = groups.find((one) => path === `/${place(one)}` || path === `/openapi/v3/${place(one)}`);
  if (group === undefined) return null;
  if (!path.startsWith('/openapi')) {
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: group, resources: resources(group) };
  }
  const [name = '', version = ''] = group === 'v1' ? ['', 'v1'] : group.split('/');
  const patch = (kind: string): Tree => ({
    parameters: [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }],
    responses: {},
    'x-kubernetes-group-version-kind': { group: name, kind, version },
  });
  const paths = kinds
    .filter((kind) => kind.group === group)
    .map(({ kind, plural }) => [`/${place(group)}/namespaces/{namespace}/${plural}/{name}`, { patch: patch(kind) }]);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.34.0' },
    paths: Object.fromEntries(paths) as Tree,
  };
}

function matches({ metadata }: Manifest, labels: string, fields: string): boolean {
  const pairs = (text: string): readonly (readonly string[])[] =>
    text
      .split(',')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split(/=+/));
  return (
    pairs(labels).every(([name = '', value]) => metadata.labels?.[name] === value) &&
    pairs(fields).every(([name, value]) => name !== 'metadata.name' || metadata.name === value)
  );
}

/** RFC 7396, which is what all kinds of patches come to where lists are sent whole. */
function merge(old: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> =
    typeof old === 'object' && old !== null && !Array.isArray(old) ? { ...old } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(merged, key);
    else merged[key] = merge(merged[key], value);
  }
  return merged;
}

function status(code: number, reason: string, message = reason): Tree {
  return { kind: 'Status', apiVersion: 'v1', status: code < 300 ? 'Success' : 'Failure', reason, message, code };
}

function send(res: ServerResponse, code: number, body: unknown): void {
  res.writeHead(code, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
}

async function bodyOf(req: IncomingMessage): Promise<Manifest | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  if (req.headers['content-type']?.includes('protobuf') === true) return readProtobuf(body);
  return body.length === 0 ? null : (parse(body.toString('utf8')) as Manifest);
}
