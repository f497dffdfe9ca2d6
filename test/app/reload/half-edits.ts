/** Edits of which half takes effect at start only. */
import type { ApplicationRoutes } from '../../../src/config/checks/application-routes.js';
import { merge, type ConfigTree } from '../../support/proxy-process.js';

export const memory: ConfigTree = { store: { memory: {} } };
export const dpop = { origins: ['https://orders.example.com'] };
export const tls = { cert_file: '/a', key_file: '/b' };
export const verifying = { ...tls, client_ca_file: '/c' };
export const asking = { ...tls, client_auth: 'request' };
export const told = { listen: { client_cert_header: true, trust_forwarded: ['10.0.0.1'] } };
export const read = { name: 'read', methods: ['GET'], path: '/read', subjects: ['checkout'], permissions: [] };
export const everybodys = { name: 'read', methods: ['GET'], path: '/read', access: 'public' };
export const shown = { ...read, client_certificates: ['CN=checkout'] };
export const wide = {
  ...shown,
  name: 'wide',
  methods: ['*'],
  path: '/{x}',
  idempotency: { mode: 'none', because: 'a test' },
};
export const one = { ...read, name: 'one', path: '/api/{x}' };
export const two = { ...read, name: 'two', path: '/api/{x}/{y}' };
export const deeper = { ...read, name: 'deeper', path: '/api/{x}/**' };
export const far = { ...read, name: 'far', path: '/api/{a}/{b}/{c}/{d}/{e}/**' };
export const place = { ...read, name: 'place', methods: ['POST'], path: '/place', idempotency: 'required' };
export const free = { ...place, idempotency: { mode: 'none', because: 'a test' } };
export const shadow = { mode: 'shadow' };
export const front = { port: 9000, form: 'caddy' };
export const accepting = { ...front, accept: ['unreserved'] };
export const revoked = { subjects: ['mallory'] };

export function binding(word: string): ConfigTree {
  return { issuers: { core: { binding: word } }, routes: [read] };
}

/** Another issuer beside the one that every config has. */
export function another(word: string): ConfigTree {
  const issuer = { issuer: 'https://b.example', audience: 'orders', source: 's', token_type: 't' };
  return { issuers: { other: { ...issuer, jwks_url: 'http://127.0.0.1:2', binding: word } } };
}

/** The issuer that every config has, by another name. */
export function renamed(word: string, audience = 'orders'): ConfigTree {
  return { issuers: { core: undefined, main: likeCore(word, { audience }) } };
}

/** An entry such as every config has, for a part of the same issuer's tokens. */
export function likeCore(word: string, more: { readonly audience?: string; readonly token_type?: string }): ConfigTree {
  const issuer = {
    issuer: 'https://api.example.com',
    source: 'microservice',
    audience: 'orders',
    token_type: 'service',
  };
  return { ...issuer, jwks_url: 'http://127.0.0.1:2', binding: word, ...more };
}

/** What both issuers say. */
export function both(word: string): ConfigTree {
  return merge(another(word), binding(word));
}

export function settled(timeout: string, grace: string): ConfigTree {
  return {
    store: { redis: { url: 'redis://127.0.0.1:1', settle_timeout: timeout } },
    shutdown: { grace },
  };
}

/** What an application says that has no routes yet. */
export function application(verifiesCertificates: boolean): ApplicationRoutes {
  return { policies: [], served: [], mustBeCovered: false, verifiesCertificates };
}
