/** The section of the operators’ listener. */
import type { z } from 'zod';
import { adminDefault } from '../../load/listener-addresses.js';
import type { ParsedConfig } from '../../load/parse-sections.js';
import type { Report } from '../../load/report.js';
import { flag, host, map, port } from '../../schema/scalars.js';
import { section } from '../../schema/section.js';
import { isLoopback } from '../../../lib/ip-ranges.js';

const adminSchema = map({
  host: host().prefault(adminDefault.host).describe('Address of the operators’ listener; its `Host` is checked.'),
  port: port()
    .prefault(adminDefault.port)
    .describe('Port of the operators’ listener: `/livez`, `/readyz`, `/metrics`, `/status`, and the console at `/`.'),
  console: flag()
    .prefault(true)
    .describe('Whether a browser gets a page for people at `/`, which shows what is in force and changes nothing.'),
});

export type HostPortFile = Pick<z.output<typeof adminSchema>, 'host' | 'port'>;

export const admin = section({
  schema: adminSchema.prefault({}).describe('The operators’ listener. Read once, at start.'),
  check,
  compile: ({ host, port, console }) => ({ admin: { host, port, console } }),
  keys: {
    host: { restart: true, of: ({ admin }) => admin.host },
    port: { restart: true, of: ({ admin }) => admin.port },
    console: { restart: true, of: ({ admin }) => admin.console },
  },
});

function check({ admin, isPresent }: ParsedConfig, report: Report): void {
  if (admin === null || isLoopback(admin.value.host)) return;
  const path = isPresent(['admin', 'host']) ? ['admin', 'host'] : ['admin'];
  report.warning(
    path,
    `the operators’ listener can be reached from other machines: admin.host is ${report.show(path)}`,
    'a loopback address',
  );
}
