/** A proxy whose caller holds a good token, and what of the caller's fields the receiver gets. */
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import type { RawResponse } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';

export type Fields = readonly (readonly [string, string])[];

export interface FieldsProxy {
  readonly proxy: ProxyProcess;
  readonly token: string;
  /** A GET of `/orders` with the token and these fields, or a POST where there is a body. */
  readonly send: (fields: Fields, body?: string) => Promise<RawResponse>;
  /** What the receiver got last. */
  readonly received: () => ReceivedRequest;
}

export async function startFieldsProxy(t: Scope): Promise<FieldsProxy> {
  const proxy = await startProxyProcess(t);
  const token = proxy.token();
  return {
    proxy,
    token,
    send: async (fields, body) =>
      proxy.request({
        method: body === undefined ? 'GET' : 'POST',
        path: '/orders',
        headers: [['Authorization', `Bearer ${token}`], ...fields],
        ...(body === undefined ? {} : { body }),
      }),
    received: () => {
      const last = proxy.receiver.requests.at(-1);
      if (last === undefined) throw new Error('nothing was received');
      return last;
    },
  };
}

/** The names of a request's fields, in lower case and in order. */
export function names(request: ReceivedRequest): string[] {
  return request.rawHeaders.filter((_text, index) => index % 2 === 0).map((name) => name.toLowerCase());
}

/** Case and every byte that is no letter or digit taken away. */
export function bare(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
