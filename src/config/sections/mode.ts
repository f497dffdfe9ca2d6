/** The section that says whether refusals count, or are only told of. */
import type { ParsedConfig } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import { type ReceiverFile, receiverRouter } from './receiver.js';
import { saidByAnother } from '../schema/key-changes.js';
import { word } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import { foldingOf } from '../../decision/route/conflicts/find-conflicts.js';
import { createFoldedTable } from '../../decision/route/conflicts/folded-table.js';
import { openRoute } from '../../decision/route/open-route.js';
import { representativeMethods } from '../../decision/route/conflicts/unreachable.js';
import type { RouteTable } from '../../decision/route/route-table.js';
import type { Unmatched } from '../../decision/route/shadow-mode.js';

export const mode = section({
  schema: word('enforce', 'shadow')
    .prefault('enforce')
    .describe(
      '`shadow`: what would be answered 401 or 403 is logged and counted, and goes on without an identity. It holds for requests without a ' +
        'route, and for routes that do not say otherwise. See [shadow.md](shadow.md).',
    ),
  check,
  compile: (file, { values, table }): { readonly unmatched: Unmatched | null } => ({
    unmatched: file === 'shadow' ? compileUnmatched(table, values.upstream.response_timeout, values.receiver) : null,
  }),
  keys: { '': saidByAnother },
});

/** Warns of shadow mode: nobody is kept out there. */
function check({ rawValue }: ParsedConfig, report: Report): void {
  if (rawValue(['mode']) === 'shadow') {
    report.warning(
      ['mode'],
      'mode is shadow: routes without a mode of their own and requests without a route let everybody through',
      'enforce, once the log shows nothing that should pass',
    );
  }
}

/** Warns of routes in shadow mode. */
export function checkModeOfRoutes({ rawValue, routes }: ParsedConfig, report: Report): void {
  for (const { path } of routes) {
    if (rawValue([...path, 'mode']) !== 'shadow') continue;
    if (rawValue([...path, 'access']) === 'public') {
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
function compileUnmatched(table: RouteTable, responseTimeoutMs: number, receiver: ReceiverFile): Unmatched {
  const router = receiverRouter(receiver);
  return {
    route: {
      ...openRoute,
      name: 'none',
      methods: null,
      paths: [],
      mode: 'shadow',
      allowsWebSocket: false,
      maxBodyBytes: Number.MAX_SAFE_INTEGER,
      responseTimeoutMs,
    },
    readings: createFoldedTable(table.routes, foldingOf(router)),
    ranForOptions: router.optionsAsGet ? representativeMethods(table) : [],
  };
}
