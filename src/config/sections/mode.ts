import { createFoldedTable } from '../../decision/route/conflicts/folded-table.js';
import type { Route } from '../../decision/route/policy.js';
import type { Unmatched } from '../../decision/route/shadow-mode.js';
import { foldingOf } from '../../decision/route/conflicts/find-conflicts.js';
import { receiverRouter, type ReceiverFile, type UpstreamFile } from './upstream-schema.js';

/** How requests without a route go on where the file's mode is shadow. Nobody said how large their bodies may be. */
export function compileUnmatched(routes: readonly Route[], upstream: UpstreamFile, receiver: ReceiverFile): Unmatched {
  return {
    route: {
      name: 'none',
      methods: null,
      paths: [],
      access: 'public',
      mode: 'shadow',
      acceptsService: false,
      session: null,
      approvals: [],
      issuers: null,
      allowsWebSocket: false,
      origins: null,
      allowsBody: false,
      encodedSlashes: false,
      pathParameters: false,
      forwardsAuthorization: true,
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      responseTimeoutMs: upstream.response_timeout,
      reservation: null,
      unreservedBecause: null,
      limits: null,
    },
    readings: createFoldedTable(routes, foldingOf(receiverRouter(receiver))),
  };
}
