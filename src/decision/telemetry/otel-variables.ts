/**
 * What the environment says of telemetry: OpenTelemetry's own variables, as its specification has them (General SDK
 * Configuration; OTLP Exporter). What the config says comes first.
 */
import { isFieldName } from '../http/header-names.js';
import { isFieldValue } from '../http/header-values.js';
import { isLoopback } from '../../lib/ip-ranges.js';
import type { SamplingRules } from './sampling.js';

export type Protocol = 'http/protobuf' | 'http/json';

/** What the config says. */
export interface ConfiguredTelemetry {
  readonly otlp: {
    /** Without a slash at its end. */
    readonly endpoint: string;
    readonly protocol: Protocol;
    readonly headersFile: string | null;
    readonly caFile: string | null;
  } | null;
  /** `null` where it does not say. */
  readonly ratio: number | null;
  readonly followedPerSecond: number;
  readonly metrics: boolean;
  readonly logs: boolean;
}

/** What is sent, and where. */
export interface TelemetrySettings {
  /** Whole URLs; `null` where the signal is not sent. */
  readonly urls: { readonly traces: string; readonly metrics: string | null; readonly logs: string | null };
  readonly protocol: Protocol;
  /** Names and values in turn, of the environment: secret. */
  readonly headers: readonly string[];
  readonly headersFile: string | null;
  readonly caFile: string | null;
  /** For one export. */
  readonly timeoutMs: number;
  readonly sampling: SamplingRules;
  /** Attributes of the resource besides those that the process knows. */
  readonly resource: Readonly<Record<string, string>>;
  readonly queue: QueueLimits;
}

/** How items wait to be sent. */
export interface QueueLimits {
  readonly maxItems: number;
  readonly maxBatch: number;
  readonly delayMs: number;
}

/** The settings that result, and what of the environment does not count, in words that hold no value. */
interface EffectiveTelemetry {
  /** `null` where nothing is sent. */
  readonly settings: TelemetrySettings | null;
  readonly warnings: readonly string[];
}

export type Variables = Readonly<Record<string, string | undefined>>;

const defaultRatio = 0.01;

/** Variables for what is not supported, each with the values that ask for nothing. */
const unsupported: readonly (readonly [name: string, harmless: readonly string[], instead: string])[] = [
  ['OTEL_TRACES_EXPORTER', ['otlp', 'none'], 'spans are sent over OTLP'],
  ['OTEL_METRICS_EXPORTER', ['none'], 'telemetry.metrics of the config says whether metrics are sent'],
  ['OTEL_LOGS_EXPORTER', ['none'], 'telemetry.logs of the config says whether log records are sent'],
  ['OTEL_PROPAGATORS', ['tracecontext', 'tracecontext,baggage'], 'traceparent and tracestate alone are read'],
  ['OTEL_EXPORTER_OTLP_COMPRESSION', ['none'], 'nothing is compressed'],
  ['OTEL_EXPORTER_OTLP_CLIENT_KEY', [], 'no client certificate is shown'],
  ['OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', [], 'no client certificate is shown'],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', [], 'OTEL_EXPORTER_OTLP_PROTOCOL is read'],
  ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', [], 'OTEL_EXPORTER_OTLP_HEADERS is read'],
  ['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', [], 'OTEL_EXPORTER_OTLP_TIMEOUT is read'],
  ['OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE', [], 'OTEL_EXPORTER_OTLP_CERTIFICATE is read'],
  ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', [], 'OTEL_EXPORTER_OTLP_ENDPOINT is read'],
  ['OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', [], 'OTEL_EXPORTER_OTLP_ENDPOINT is read'],
];

/**
 * Says what is sent. The config's collector comes first; without one, `OTEL_EXPORTER_OTLP_ENDPOINT` or
 * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` switches traces on by itself, as programs with an SDK have it.
 */
export function effectiveTelemetry(config: ConfiguredTelemetry, variables: Variables): EffectiveTelemetry {
  const read = new Reader(variables);
  const collector = collectorOf(config, read);
  if (collector === null || read.flag('OTEL_SDK_DISABLED') || read.text('OTEL_TRACES_EXPORTER') === 'none') {
    return { settings: null, warnings: [] };
  }
  for (const [name, harmless, instead] of unsupported) {
    const value = read.text(name);
    if (value !== null && !harmless.includes(value)) read.warn(name, `is not supported: ${instead}`);
  }
  const { base, traces } = collector;
  const below = (path: string): string => (base === null ? traces : `${base}${path}`);
  const maxItems = read.number('OTEL_BSP_MAX_QUEUE_SIZE', 2_048, 1, 65_536);
  const settings: TelemetrySettings = {
    urls: {
      traces,
      metrics: config.metrics && base !== null ? below('/v1/metrics') : null,
      logs: config.logs && base !== null ? below('/v1/logs') : null,
    },
    protocol: collector.protocol,
    headers: headersOf(read),
    headersFile: config.otlp?.headersFile ?? null,
    caFile: config.otlp === null ? read.text('OTEL_EXPORTER_OTLP_CERTIFICATE') : config.otlp.caFile,
    timeoutMs: read.number('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, 1, 600_000),
    sampling: samplingOf(config, read),
    resource: {
      ...Object.fromEntries(read.pairs('OTEL_RESOURCE_ATTRIBUTES')),
      ...serviceName(read.text('OTEL_SERVICE_NAME')),
    },
    queue: {
      maxItems,
      maxBatch: Math.min(maxItems, read.number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, 1, 65_536)),
      delayMs: read.number('OTEL_BSP_SCHEDULE_DELAY', 5_000, 1, 600_000),
    },
  };
  if (settings.headers.length > 0) warnOfPlaces(settings.urls, config, read);
  return { settings, warnings: read.warnings };
}

const headersName = 'OTEL_EXPORTER_OTLP_HEADERS';

function headersOf(read: Reader): readonly string[] {
  return read.pairs(headersName).flatMap(([name, value]) => {
    if (isFieldName(name) && isFieldValue(value)) return [name, value];
    read.warn(headersName, 'has a part that is no header, which is left out');
    return [];
  });
}

/** Says where the headers, a token mostly, can be read on their way, or go to another collector than they are of. */
function warnOfPlaces(urls: TelemetrySettings['urls'], { otlp }: ConfiguredTelemetry, read: Reader): void {
  const places = [urls.traces, urls.metrics, urls.logs].flatMap((url) => (url === null ? [] : [new URL(url)]));
  if (places.some(({ protocol, hostname }) => protocol === 'http:' && !isLoopback(hostname))) {
    read.warn(headersName, 'is sent over http to another host');
  }
  if (otlp === null) return;
  const { origin } = new URL(otlp.endpoint);
  const named = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].find((name) => {
    const url = read.url(name);
    return url !== null && new URL(url).origin !== origin;
  });
  if (named !== undefined) {
    read.warn(headersName, `goes to telemetry.otlp.endpoint, which is another place than ${named}`);
  }
}

interface Collector {
  /** What the paths of signals are below; `null` where only spans have a place. */
  readonly base: string | null;
  readonly traces: string;
  readonly protocol: Protocol;
}

function collectorOf({ otlp }: ConfiguredTelemetry, read: Reader): Collector | null {
  if (otlp !== null) return { base: otlp.endpoint, traces: `${otlp.endpoint}/v1/traces`, protocol: otlp.protocol };
  const base = read.url('OTEL_EXPORTER_OTLP_ENDPOINT')?.replace(/\/+$/, '') ?? null;
  const traces = read.url('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') ?? (base === null ? null : `${base}/v1/traces`);
  return traces === null ? null : { base, traces, protocol: protocolOf(read) };
}

function protocolOf(read: Reader): Protocol {
  const name = 'OTEL_EXPORTER_OTLP_PROTOCOL';
  const protocol = read.text(name) ?? 'http/protobuf';
  if (protocol === 'http/protobuf' || protocol === 'http/json') return protocol;
  read.warn(name, 'is not supported: http/protobuf is spoken, or http/json');
  return 'http/protobuf';
}

/** Where only variables say that there is a collector, the specification's own default counts: every request. */
function samplingOf({ otlp, ratio }: ConfiguredTelemetry, read: Reader): SamplingRules {
  if (ratio !== null) return { ratio, followsParent: true };
  const name = 'OTEL_TRACES_SAMPLER';
  const usual = { ratio: otlp === null ? 1 : defaultRatio, followsParent: true };
  const sampler = read.text(name);
  if (sampler === null) return usual;
  const followsParent = sampler.startsWith('parentbased_');
  switch (followsParent ? sampler.slice('parentbased_'.length) : sampler) {
    case 'always_on':
      return { ratio: 1, followsParent };
    case 'always_off':
      return { ratio: 0, followsParent };
    case 'traceidratio':
      return { ratio: read.number('OTEL_TRACES_SAMPLER_ARG', 1, 0, 1), followsParent };
    default:
      read.warn(name, 'is not supported: always_on, always_off or traceidratio, each also behind parentbased_');
      return usual;
  }
}

function serviceName(name: string | null): Readonly<Record<string, string>> {
  return name === null ? {} : { 'service.name': name };
}

/** Reads variables; an empty one counts as none. Remembers what was wrong. */
class Reader {
  readonly warnings: string[] = [];
  private readonly variables: Variables;

  constructor(variables: Variables) {
    this.variables = variables;
  }

  warn(name: string, what: string): void {
    const warning = `${name} ${what}`;
    if (!this.warnings.includes(warning)) this.warnings.push(warning);
  }

  text(name: string): string | null {
    const text = this.variables[name]?.trim() ?? '';
    return text === '' ? null : text;
  }

  flag(name: string): boolean {
    return this.text(name)?.toLowerCase() === 'true';
  }

  number(name: string, usual: number, least: number, most: number): number {
    const text = this.text(name);
    if (text === null) return usual;
    const value = Number(text);
    if (value >= least && value <= most) return value;
    this.warn(name, `does not count: it is no number from ${String(least)} to ${String(most)}`);
    return usual;
  }

  url(name: string): string | null {
    const text = this.text(name);
    if (text === null) return null;
    if (/^https?:\/\/[^\s@?#\\]+$/.test(text) && URL.canParse(text)) return text;
    this.warn(name, 'does not count: it is no http or https URL without user, query and fragment');
    return null;
  }

  /** `name=value,name=value`, values in percent-encoding. */
  pairs(name: string): readonly (readonly [string, string])[] {
    const found: (readonly [string, string])[] = [];
    for (const part of this.text(name)?.split(',') ?? []) {
      const [, key, value] = /^\s*([^=\s]{1,256})\s*=\s*([^\x00-\x1f\x7f]{0,4096}?)\s*$/.exec(part) ?? [];
      const decoded = value === undefined ? null : percentDecoded(value);
      if (key !== undefined && decoded !== null) found.push([key, decoded]);
      else this.warn(name, 'has a part that is not NAME=VALUE, which is left out');
    }
    return found;
  }
}

/** `null` where it is malformed: `decodeURIComponent` would throw. */
function percentDecoded(text: string): string | null {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return null;
  const bytes = Buffer.from(
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    'latin1',
  );
  const decoded = /%/.test(text) ? bytes.toString('utf8') : text;
  return decoded.includes('\ufffd') || /[\x00-\x1f\x7f]/.test(decoded) ? null : decoded;
}
