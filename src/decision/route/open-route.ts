import type { Route } from './policy.js';

/** What a route for everybody has, whatever it is for: nobody is asked who they are, and nothing is reserved. */
export const openRoute = {
  isGrpc: false,
  access: 'public',
  acceptsService: false,
  session: null,
  approvals: [],
  issuers: null,
  clientCertificates: null,
  origins: null,
  allowsBody: false,
  encodedSlashes: false,
  pathParameters: false,
  forwardsAuthorization: true,
  reservation: null,
  unreservedBecause: null,
  limits: null,
} as const satisfies Partial<Route>;
