/** The section that says what is sent to a collector over OTLP. */
import type { ParsedConfig } from '../load/parse-sections.js';
import type { Report } from '../load/report.js';
import { isLoopback } from '../../lib/ip-ranges.js';
import { reloaded, withoutSecrets } from '../schema/key-changes.js';
import { baseUrl, decimal, filePath, flag, integer, map, word } from '../schema/scalars.js';
import { section } from '../schema/section.js';

const otlpSchema = map({
  endpoint: baseUrl().describe(
    'Where the collector takes OTLP over HTTP: `http://HOST:4318`. Spans go to `/v1/traces` below it, metrics to `/v1/metrics`, log ' +
      'records to `/v1/logs`.',
  ),
  protocol: word('http/protobuf', 'http/json').prefault('http/protobuf').describe('How it is written.'),
  headers_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'File with headers for the collector, `Name: value` in each line: a token, mostly. Read again for each export.',
    ),
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'Authorities in PEM that vouch for the collector, instead of the system’s. Read again for each export. Only with https.',
    ),
});

const tracesSchema = map({
  ratio: decimal(0, 1)
    .optional()
    .describe(
      'Which part of the requests is traced that no caller decided on. Default: 0.01, or what `OTEL_TRACES_SAMPLER` says.',
    ),
  followed_per_second: integer(0, 100_000)
    .prefault(100)
    .describe(
      'Requests in a second, on average, that are traced since their callers trace them. Only callers with a good credential and trusted ' +
        'proxies are followed.',
    ),
});

const telemetrySchema = map({
  otlp: otlpSchema
    .nullable()
    .prefault(null)
    .describe('The collector. null: nothing is sent, unless `OTEL_EXPORTER_OTLP_ENDPOINT` names one.'),
  traces: tracesSchema.prefault({}).describe('Which requests are traced.'),
  metrics: flag().prefault(false).describe('Whether what `/metrics` shows is sent as well, each minute.'),
  logs: flag().prefault(false).describe('Whether the lines of the log are sent as well.'),
});

export const telemetry = section({
  schema: telemetrySchema
    .prefault({})
    .describe('Traces, metrics and log records for a collector, over OTLP. See [telemetry.md](telemetry.md).'),
  check: checkTelemetry,
  compile: ({ otlp, traces, metrics, logs }, { absolute }) => ({
    telemetry: {
      otlp:
        otlp === null
          ? null
          : {
              /** Without a slash at its end. */
              endpoint: otlp.endpoint.replace(/\/+$/, ''),
              protocol: otlp.protocol,
              headersFile: absolute(otlp.headers_file),
              caFile: absolute(otlp.ca_file),
            },
      /** `null` where the config does not say. */
      ratio: traces.ratio ?? null,
      followedPerSecond: traces.followed_per_second,
      metrics,
      logs,
    },
  }),
  keys: {
    otlp: { restart: true, of: ({ telemetry: { otlp } }) => otlp !== null },
    'otlp.endpoint': { restart: true, of: ({ telemetry: { otlp } }) => otlp && withoutSecrets(otlp.endpoint) },
    'otlp.protocol': { restart: true, of: ({ telemetry: { otlp } }) => otlp?.protocol },
    'otlp.headers_file': { restart: true, of: ({ telemetry: { otlp } }) => otlp?.headersFile },
    'otlp.ca_file': { restart: true, of: ({ telemetry: { otlp } }) => otlp?.caFile },
    'traces.ratio': reloaded,
    'traces.followed_per_second': reloaded,
    metrics: { restart: true, of: (config) => config.telemetry.metrics },
    logs: { restart: true, of: (config) => config.telemetry.logs },
  },
});

function checkTelemetry(config: ParsedConfig, report: Report): void {
  const { otlp, metrics, logs } = config.telemetry?.value ?? { otlp: null, metrics: false, logs: false };
  if (otlp === null) {
    for (const [name, isOn] of Object.entries({ metrics, logs })) {
      if (!isOn) continue;
      report.warning(
        ['telemetry', name],
        `telemetry.${name} has no use without a collector`,
        'telemetry.otlp.endpoint',
      );
    }
    return;
  }
  if (otlp.endpoint.startsWith('https:')) return;
  if (otlp.ca_file !== null) {
    const at = ['telemetry', 'otlp', 'ca_file'];
    report.error(at, 'telemetry.otlp.ca_file has no use without https', 'an https telemetry.otlp.endpoint');
  }
  if (otlp.headers_file !== null && !isLoopback(new URL(otlp.endpoint).hostname)) {
    const at = ['telemetry', 'otlp', 'headers_file'];
    report.warning(at, 'telemetry.otlp.headers_file is sent over http to another host', 'https');
  }
}
