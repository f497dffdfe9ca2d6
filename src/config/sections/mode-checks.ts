import type { ConfigParts } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';

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
