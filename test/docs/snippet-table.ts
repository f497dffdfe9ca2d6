/** What shows that each fenced block of README.md and docs/*.md works. */

/**
 * - `test`: that test runs it.
 * - `config`: `snippets.test.ts` puts it into a whole config, as the keys or the route that it shows, and checks that.
 * - `commands`: `snippets.test.ts` holds its commands and options to the programs; what is not ours is named beside it,
 *   with who knows it.
 * - `sample`: it shows what comes out or goes in, for people. Why no test runs it is written down.
 */
export type Treatment =
  | { readonly test: string }
  | { readonly config: 'keys' | 'route' }
  | { readonly commands: Readonly<Record<string, string>> }
  | { readonly sample: string };

export interface SnippetRow {
  readonly page: string;
  /** How it begins: with as much of its first lines as tells it from the others of the page. */
  readonly begins: string;
  readonly shown: Treatment;
}

/** Rows of one page, from how a block begins to what shows it. */
function page(name: string, rows: Readonly<Record<string, Treatment>>): readonly SnippetRow[] {
  return Object.entries(rows).map(([begins, shown]) => ({ page: name, begins, shown }));
}

const install = 'test/release/install.long.test.ts';
const walk = 'test/docs/walk.test.ts';
const deployment = 'test/docs/deployment.test.ts';
const systemd = 'test/docs/systemd.test.ts';
const legacy = 'test/docs/legacy-applications.test.ts';
const fronts = 'test/docs/fronts.test.ts';
const decideFronts = 'test/decide/fronts.test.ts';
const tokens = 'test/docs/tokens.test.ts';
const docker =
  'no engine here: the Dockerfile’s steps are run by test/image/image.long.test.ts, its arguments held by test/docs/deployment.test.ts';

export const snippetTable: readonly SnippetRow[] = [
  ...page('README.md', {
    'npm ci && npx sallyport dev': { commands: {} },
    'listen: { host: 127.0.0.1, port: 8080 }': { test: 'test/readme.test.ts' },
    'npx sallyport check --strict': { commands: {} },
    '{': { test: 'test/readme.test.ts' },
    'npm ci && npm test': { commands: {} },
  }),
  ...page('CONTRIBUTING.md', { 'npm ci ': { commands: {} } }),
  ...page('docs/fastify.md', {
    'import { fastify }': { test: 'test/fastify/package.test.ts' },
    'issuers:': { test: 'test/fastify/package.test.ts' },
  }),
  ...page('docs/console.md', {
    'kubectl port-forward': { commands: { kubectl: 'test/docs/walk.test.ts' } },
    'admin:': { config: 'keys' },
  }),
  ...page('docs/assertion.md', {
    'identity:': { config: 'keys' },
    'openssl genpkey': { test: 'test/docs/snippets.test.ts' },
    'import { createHash }': { test: 'test/app/keys/assertion-snippets.test.ts' },
    'import base64': { test: 'test/app/keys/assertion-snippets-python.test.ts' },
    'import java': { test: 'test/app/keys/assertion-snippets-java.test.ts' },
  }),
  ...page('docs/behind-a-proxy.md', {
    'listen:': { test: fronts },
    'proxy_http_version 1.1;': { test: fronts },
    'map $http_upgrade': { test: fronts },
    defaults: { test: fronts },
    'orders.example.com {': { test: fronts },
    '<VirtualHost': { test: fronts },
    '# Traefik': { sample: 'Traefik is no package of Debian or npm; the page says that its lines were not run' },
  }),
  ...page('docs/bound-tokens.md', {
    'sallyport dev --bound': { test: 'test/cli/commands/dev/bound.test.ts' },
    'openssl genpkey': { test: 'test/cli/commands/dev/bound.test.ts' },
    'listen:\n  host: 0.0.0.0\n  port: 8443\n  tls:\n': { config: 'keys' },
    'listen:\n  host: 127.0.0.1\n  port: 8080': { config: 'keys' },
    'http-request del-header': { test: 'test/proxy/auth/client-certificates.test.ts' },
    '    client_certificates:': {
      sample: 'a route where certificates are verified; test/proxy/auth/client-certificates.test.ts has such ones',
    },
    'listen:\n  host: 0.0.0.0\n  port: 8443\n  tls: {': { config: 'keys' },
  }),
  ...page('docs/core-emulator.md', {
    'sallyport core': { commands: { curl: 'test/core-emulator/core-api.test.ts asks the same' } },
    'CORE_URL=': { commands: {} },
  }),
  ...page('docs/deployment.md', {
    'image: { repository': { test: deployment },
    'kubectl create namespace': { test: walk },
    'helm install': { test: walk },
    'helm template': { test: walk },
    '# orders/Chart.yaml': { test: walk },
    '# orders/values.yaml': { test: walk },
    '# orders/templates/deployment.yaml': { test: walk },
    'helm dependency': { test: walk },
    'kubectl apply': { test: walk },
    'probes:': { config: 'keys' },
    'config:': { test: deployment },
    'service:': { test: deployment },
    'cd docs/examples/compose': { test: 'test/docs/compose.test.ts' },
    '401: no token': { test: 'test/docs/compose.test.ts' },
  }),
  ...page('docs/grpc.md', {
    'routes:\n  - name: list-orders': { config: 'keys' },
    'sallyport check --proto': { commands: {} },
    'routes:\n  - { name: health': { config: 'keys' },
  }),
  ...page('docs/http.md', { '{ "type"': { test: 'test/docs/http.test.ts' } }),
  ...page('docs/idempotency.md', {
    'store:': { config: 'keys' },
    '    idempotency: required': { config: 'route' },
    'POST /orders': { sample: 'a request; test/conformance/reservations.test.ts sends such ones' },
    'HTTP/1.1 422': {
      sample: 'an answer; test/proxy/idempotency/receiver-levels.test.ts has receivers give such ones',
    },
    'create table applied_writes': { test: 'test/chaos/exactly-once.long.test.ts' },
    'begin;': {
      sample:
        'with $1 to $5 for values; docs/examples/exactly-once/receiver.mjs has the same, and test/chaos/exactly-once.long.test.ts runs that',
    },
    '    idempotency: { mode: none': { config: 'route' },
    '    idempotency: { mode: required': { config: 'route' },
    'create table outbox': { test: 'test/chaos/exactly-once.long.test.ts' },
    '$ sallyport record': {
      sample: 'ids are cut; test/cli/commands/record.test.ts runs the command and reads what it prints',
    },
  }),
  ...page('docs/image.md', {
    'docker build --tag': { commands: { docker } },
    'docker build --target': { commands: { docker } },
    'NODE_OPTIONS=': { test: 'test/image/permission.test.ts' },
    'npm run build': { commands: {} },
  }),
  ...page('docs/import.md', {
    'sallyport import users.jsonl --dry-run': { commands: {} },
    '{"email"': { sample: 'hashes are cut; test/user-import/cli/import.test.ts imports whole ones of each kind' },
    'firebase auth:export': {
      commands: { firebase: 'of Firebase; what it writes is read by test/user-import/cli/import.test.ts' },
    },
    'url =': {
      sample: 'a file for curl -K, with a key left out; test/core-api/curl/curl-config.test.ts reads such files',
    },
    'sallyport import users.jsonl.import': { commands: {} },
  }),
  ...page('docs/install.md', {
    'docker run': { commands: { docker } },
    'npm ci': { test: install },
    'npm install --save-exact ./': { test: install },
    'npm pkg set name=': { test: install },
    "echo '@your-scope": { test: install },
  }),
  ...page('docs/decide.md', {
    'decide:': { config: 'keys' },
    'listen:\n  dpop:': { test: 'test/decide/bound-tokens.test.ts' },
    server: { test: decideFronts },
    'http://:8080': { test: decideFronts },
    'local address': { test: decideFronts },
    global: { test: decideFronts },
    '-- As /etc/apache2': { test: decideFronts },
    LuaHook: { test: decideFronts },
    'http:\n': { sample: 'Traefik’s config: Traefik is not to be had for tests' },
    http_filters: { test: 'test/decide/envoy.test.ts' },
    'clusters:': { test: 'test/decide/envoy.test.ts' },
    '# The HTTP service': { test: 'test/decide/envoy.test.ts' },
  }),
  ...page('docs/egress.md', {
    ' pod of checkout': { sample: 'a picture of the pair' },
    'egress:': { config: 'keys' },
    'tls: { secretName': { test: 'test/helm/egress.test.ts' },
  }),
  ...page('docs/introspection.md', { 'issuers:': { config: 'keys' } }),
  ...page('docs/issuers.md', {
    'issuers:\n  idp:': { config: 'keys' },
    'issuers:\n  keycloak:': { config: 'keys' },
    'issuers:\n  cluster:': { config: 'keys' },
    'issuers:\n  spire:': { config: 'keys' },
    '    subjects: [{ prefix:': { config: 'route' },
  }),
  ...page('docs/legacy-applications.md', {
    'upstream: { url: "http': { test: legacy },
    'upstream: { url: http://127.0.0.1:3000, strip_fields': { test: legacy },
    'upstream: { url: http://127.0.0.1:3000, pass_fields': { test: legacy },
    identity: { test: legacy },
    'routes:\n  - { name: old-login,': { test: legacy },
    'listen: { host: 127.0.0.1, port: 8080, trust_forwarded': { test: legacy },
    'routes:\n  - { name: list-orders,': { test: legacy },
    'routes:\n  - { name: preflight,': { test: legacy },
    'routes:\n  - { name: create-order,': { test: legacy },
    'routes:\n  - { name: search-orders,': { test: legacy },
    'routes:\n  - { name: read-file,': { test: legacy },
    'routes:\n  - { name: list-customers,': { test: legacy },
    'listen: { host: 127.0.0.1, port: 8080, underscore_fields': { test: legacy },
    'listen: { host: 127.0.0.1, port: 8080, max_header_bytes': { test: legacy },
    'routes:\n  - { name: upload,': { test: legacy },
    'routes:\n  - { name: report,': { test: legacy },
    'routes:\n  - { name: live-orders,': { test: legacy },
  }),
  ...page('docs/limits.md', {
    'limits:': { config: 'keys' },
    'HTTP/1.1 429': { sample: 'an answer; test/proxy has real ones' },
  }),
  ...page('docs/migration.md', {
    '# Envoy': { test: 'test/docs/migration.test.ts' },
    '# Oathkeeper': { test: 'test/docs/migration.test.ts' },
    '# Sallyport, from Envoy': { test: 'test/docs/migration.test.ts' },
    '# Sallyport, from Oathkeeper': { test: 'test/docs/migration.test.ts' },
    '# Sallyport, from middleware': { test: 'test/docs/migration.test.ts' },
    'import { createRemoteJWKSet': { test: 'test/docs/migration.test.ts' },
    'export function identify': { test: 'test/docs/migration.test.ts' },
  }),
  ...page('docs/minting.md', {
    '$ cat core.curl': { sample: 'the key is left out; test/cli/commands/mint.test.ts runs the command with one' },
    '# curl asks': { commands: { curl: 'test/cli/commands/mint.test.ts sends the same body' } },
    '{"time"': { sample: 'a line of the issuance log; test/cli/commands/mint.test.ts reads real ones' },
    'import { readFile }': { test: 'test/client/package.test.ts' },
    'import { createBoundFetch': {
      sample: 'a part of a program; test/client/bound-fetch.test.ts has a proxy take its requests',
    },
  }),
  ...page('docs/operations.md', {
    '$ sallyport check': { commands: {} },
    'revoked:': { config: 'keys' },
  }),
  ...page('docs/policy-tests.md', {
    'sallyport explain': { test: 'test/cli/newcomer.test.ts' },
    'config: sallyport.yaml': { test: 'test/cli/newcomer.test.ts' },
    '  - name: checkout, with': { sample: 'cases; test/cli/commands/policy-certificates.test.ts runs such' },
    '$ sallyport diff': { sample: 'what diff prints; test/cli/commands/diff.test.ts reads real prints' },
  }),
  ...page('docs/releasing.md', {
    'node .release/release.mjs': { test: 'test/release/release.test.ts' },
    'npm ci && npm test': {
      commands: { docker, cosign: 'pushes to a registry', helm: 'pushes to a registry', git: 'pushes' },
    },
  }),
  ...page('docs/sessions.md', { 'sessions:': { config: 'keys' } }),
  ...page('docs/playground.md', { 'sallyport playground': { commands: {} } }),
  ...page('docs/learn.md', { 'sallyport learn': { commands: {} } }),
  ...page('docs/shadow.md', { 'mode: shadow': { config: 'keys' } }),
  ...page('docs/storage.md', {
    'maxmemory 2gb': { test: 'test/docs/snippets.test.ts' },
    'user sallyport on': { test: 'test/adapters/redis/client/access.test.ts' },
  }),
  ...page('docs/systemd.md', {
    'npm ci && npm run bundle': {
      commands: { sudo: 'needs root: test/docs/systemd.test.ts holds the unit and the user that it installs' },
    },
    '# /etc/sallyport/sallyport.yaml': { test: systemd },
    '[Service]\nLoadCredential': { test: systemd },
    'sudo CREDENTIALS_DIRECTORY': { test: systemd },
    'sudo systemctl reload': {
      commands: {
        sudo: 'needs a machine booted by systemd',
        journalctl: 'the same',
        curl: 'test/app/start.test.ts asks the same',
      },
    },
    '[Service]\nPrivateUsers': { test: systemd },
    'upstream: {': { config: 'keys' },
  }),
  ...page('docs/tokens.md', {
    '{ "alg"': { test: tokens },
    '{\n': { test: tokens },
    '// issuer.mjs': { test: tokens },
    'issuers:': { test: tokens },
    'node issuer.mjs': { test: tokens },
    'sallyport explain': { test: tokens },
  }),
  ...page('docs/troubleshooting.md', {
    curl: { commands: { curl: 'test/conformance/operators.test.ts asks the same' } },
  }),
  ...page('docs/websockets.md', {
    'routes:': { config: 'keys' },
    '    websocket: true': { config: 'route' },
  }),
];
