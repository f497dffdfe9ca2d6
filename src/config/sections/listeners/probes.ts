/** The section of the listener for probes. */
import { z } from 'zod';
import { probesDefault } from '../../load/listener-addresses.js';
import { host, map, port, text } from '../../schema/scalars.js';
import { section } from '../../schema/section.js';
import { readTarget } from '../../../decision/http/request-target.js';

const probeNames = 'a map of names, of 1 to 63 lower-case letters, digits and inner dashes, to paths';
const probeName = text(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, probeNames, 63);

/** The same gate as the targets of requests: what two routers read differently is no probe. */
const probePath = 'a path such as /healthz, unambiguous, of at most 1024 characters; a query may follow';
const probePathSchema = z
  .string(probePath)
  .refine((value) => readTarget(value, 1_024).ok, probePath)
  .meta({ allowed: probePath });

const probesSchema = map({
  host: host().prefault(probesDefault.host).describe('Address of the listener for probes.'),
  port: port()
    .prefault(probesDefault.port)
    .describe('Port of the listener for probes: `/livez`, `/readyz`, `/metrics`, `/app-probe/NAME`.'),
  app: z
    .record(probeName, probePathSchema, probeNames)
    .prefault({})
    .meta({ allowed: probeNames })
    .describe(
      'Probes of the upstream, which nobody but Sallyport can reach: `/app-probe/NAME` asks it for this path and answers its status. ' +
        'See [deployment.md](deployment.md#probes).',
    ),
});
export const probes = section({
  schema: probesSchema
    .nullable()
    .prefault(null)
    .describe('A further listener for those who may not reach `admin`: kubelet, Prometheus. Read once, at start.'),
  compile: (file) => ({ probes: file }),
  keys: {
    host: { restart: true, of: ({ probes }) => probes?.host ?? null },
    port: { restart: true, of: ({ probes }) => probes?.port ?? null },
    app: {
      restart: true,
      of: ({ probes }) =>
        Object.entries(probes?.app ?? {})
          .map(([name, path]) => `${name}=${path}`)
          .sort()
          .join(' '),
    },
  },
});
