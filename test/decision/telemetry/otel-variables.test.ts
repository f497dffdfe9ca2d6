import t from 'tap';
import {
  effectiveTelemetry,
  type ConfiguredTelemetry,
  type TelemetrySettings,
  type Variables,
} from '../../../src/decision/telemetry/otel-variables.js';

const off: ConfiguredTelemetry = { otlp: null, ratio: null, followedPerSecond: 100, metrics: false, logs: false };
const on: ConfiguredTelemetry = {
  ...off,
  otlp: { endpoint: 'http://config:4318', protocol: 'http/json', headersFile: '/h', caFile: null },
};
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://env:4318/' };

function settingsOf(config: ConfiguredTelemetry, variables: Variables): TelemetrySettings {
  const { settings } = effectiveTelemetry(config, variables);
  if (settings === null) throw new Error('off');
  return settings;
}

t.test('off without a collector, and where the environment says so', (t) => {
  for (const [config, variables] of [
    [off, {}],
    [off, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
    [off, { OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://x' }],
    [on, { OTEL_SDK_DISABLED: 'TRUE' }],
    [on, { OTEL_TRACES_EXPORTER: 'none' }],
  ] as const) {
    t.same(effectiveTelemetry(config, variables), { settings: null, warnings: [] });
  }
  t.end();
});

t.test('the config comes before the environment', (t) => {
  const settings = settingsOf(
    { ...on, metrics: true, logs: true, ratio: 0.2 },
    {
      ...endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca',
      OTEL_TRACES_SAMPLER: 'always_on',
    },
  );
  t.match(settings, {
    urls: {
      traces: 'http://config:4318/v1/traces',
      metrics: 'http://config:4318/v1/metrics',
      logs: 'http://config:4318/v1/logs',
    },
    protocol: 'http/json',
    caFile: null,
    headersFile: '/h',
    sampling: { ratio: 0.2, followsParent: true },
    timeoutMs: 10_000,
    queue: { maxItems: 2_048, maxBatch: 512, delayMs: 5_000 },
  });
  t.equal(settingsOf(on, {}).sampling.ratio, 0.01);
  t.end();
});

t.test('variables alone', (t) => {
  t.match(settingsOf({ ...off, metrics: true, logs: true }, endpoint), {
    urls: { traces: 'http://env:4318/v1/traces', metrics: 'http://env:4318/v1/metrics' },
    protocol: 'http/protobuf',
    sampling: { ratio: 1, followsParent: true },
  });
  const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://env/own' };
  t.match(settingsOf({ ...off, metrics: true, logs: true }, { ...traces, OTEL_EXPORTER_OTLP_CERTIFICATE: '/ca' }), {
    urls: { metrics: null, logs: null },
    caFile: '/ca',
  });
  t.end();
});

const samplers = [
  ['always_on', undefined, { ratio: 1, followsParent: false }],
  ['always_off', undefined, { ratio: 0, followsParent: false }],
  ['parentbased_always_off', undefined, { ratio: 0, followsParent: true }],
  ['parentbased_traceidratio', '0.25', { ratio: 0.25, followsParent: true }],
  ['traceidratio', undefined, { ratio: 1, followsParent: false }],
] as const;

t.test('samplers', (t) => {
  for (const [sampler, arg, expected] of samplers) {
    t.same(settingsOf(on, { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: arg }).sampling, expected, sampler);
  }
  const { settings, warnings } = effectiveTelemetry(on, { OTEL_TRACES_SAMPLER: 'jaeger_remote' });
  t.same(settings?.sampling, { ratio: 0.01, followsParent: true });
  t.match(warnings, [/^OTEL_TRACES_SAMPLER /]);
  t.end();
});

t.test('the resource, headers and numbers', (t) => {
  const { settings, warnings } = effectiveTelemetry(on, {
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=a%20b,service.name=x,odd,bad=%zz,more=%ff,line=%0a',
    OTEL_SERVICE_NAME: 'shop',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t,b d=1,é=2',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
  });
  t.same(settings?.resource, { 'deployment.environment.name': 'a b', 'service.name': 'shop' });
  t.same(settings?.headers, ['authorization', 'Bearer t']);
  t.match(settings, { timeoutMs: 10_000, queue: { maxItems: 10, maxBatch: 10 } });
  t.match(
    warnings,
    [/OTLP_TIMEOUT/, /OTEL_RESOURCE_ATTRIBUTES/, /OTLP_HEADERS/].map(() => String),
  );
  t.notMatch(warnings.join(), /soon|Bearer/);
  t.end();
});

t.test('headers of the environment over http, or to the config’s collector, are a warning', (t) => {
  const headers = { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20t' };
  const warned = (config: ConfiguredTelemetry, variables: Variables): readonly string[] =>
    effectiveTelemetry(config, { ...headers, ...variables }).warnings;
  const to = (url: string): ConfiguredTelemetry => ({
    ...off,
    otlp: { endpoint: url, protocol: 'http/json', headersFile: null, caFile: null },
  });
  const overHttp = 'OTEL_EXPORTER_OTLP_HEADERS is sent over http to another host';
  const elsewhere =
    'OTEL_EXPORTER_OTLP_HEADERS goes to telemetry.otlp.endpoint, which is another place than OTEL_EXPORTER_OTLP_ENDPOINT';
  const https = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://env:4318' };
  t.same(warned(off, endpoint), [overHttp]);
  t.same(warned(off, https), []);
  t.same(warned(off, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }), []);
  t.same(warned(off, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://[::1]:4318' }), []);
  t.same(warned(off, { ...https, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://env/own' }), [overHttp]);
  t.same(
    warned({ ...off, metrics: true }, { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://env/own' }),
    [overHttp],
    'of the place of metrics alone',
  );
  t.same(warned(to('http://config:4318'), {}), [overHttp]);
  t.same(warned(to('https://config:4318'), {}), []);
  t.same(warned(to('https://config:4318'), https), [elsewhere]);
  t.same(warned(to('https://env:4318/below'), https), []);
  t.same(warned(to('https://env:4318'), { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://own/v1/traces' }), [
    elsewhere.replace('OTLP_ENDPOINT', 'OTLP_TRACES_ENDPOINT'),
  ]);
  t.same(warned(to('http://config:4318'), { ...https, OTEL_EXPORTER_OTLP_HEADERS: '' }), []);
  t.end();
});

t.test('what is not supported is a warning', (t) => {
  const { warnings } = effectiveTelemetry(off, {
    ...endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_TRACES_EXPORTER: 'zipkin',
  });
  t.equal(warnings.length, 3);
  t.end();
});
