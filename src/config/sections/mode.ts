import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import { type ReceiverFile, receiverRouter, type UpstreamFile } from './upstream.js';
import { foldingOf } from '../../decision/route/conflicts/find-conflicts.js';
import { createFoldedTable } from '../../decision/route/conflicts/folded-table.js';
import type { Route } from '../../decision/route/policy.js';
import type { Unmatched } from '../../decision/route/shadow-mode.js';

/** Warns of what is in shadow mode: nobody is kept out there. */
export function checkMode({ written, routes }: ConfigParts, report: Report): void {
  if (written(['mode']) === 'shadow') {
    report.warning(
      ['mode'],
      'mode is shadow: routes without a mode of their own and requests without a route let everybody through',
      'enforce, once the log shows nothing that should pass',
    );
  }
  for (const { path } of routes) {
    if (written([...path, 'mode']) !== 'shadow') continue;
    if (written([...path, 'access']) === 'public') {
      report.error(
        [...path, 'mode'],
        `route ${report.show([...path, 'name'])} is public: there is nothing that shadow mode could let through`,
        'enforce',
      );
      continue;
    }
    report.warning(
      [...path, 'mode'],
      `route ${report.show([...path, 'name'])} is in shadow mode: it lets everybody through`,
      'enforce, once the log shows nothing that should pass',
    );
  }
}

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
