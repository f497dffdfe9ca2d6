/** `sallyport serve` before a service of gRPC. */
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';

export const who = { subjects: ['checkout'], permissions: ['orders:write'] };

const none = { mode: 'none', because: 'a test' };

/** The routes of `shop.v1`: one that takes long streams, and one of small bodies. */
export const routes: readonly ConfigTree[] = [
  { name: 'orders', grpc: 'shop.v1.Orders', ...who, max_body: '16MiB', idempotency: none },
  { name: 'small', grpc: 'shop.v1.Small', ...who, max_body: '64KiB', idempotency: none },
];

/** The config of a proxy with this upstream, by its port. */
export function configOf(port: number, overrides: ConfigTree = {}): ConfigTree {
  return {
    listen: { http2: true },
    upstream: { url: `http://127.0.0.1:${String(port)}`, http2: true },
    routes,
    ...overrides,
  };
}

/** Starts one before the service on this port. */
export async function startGrpcProxy(t: Scope, port: number, overrides: ConfigTree = {}): Promise<ProxyProcess> {
  return startProxyProcess(t, { config: configOf(port, overrides) });
}
