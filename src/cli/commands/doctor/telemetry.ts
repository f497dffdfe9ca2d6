/** What the doctor finds out about the collector. */
import { localFiles } from '../../../adapters/files/files.js';
import { OtlpSender } from '../../../adapters/telemetry/otlp-sender.js';
import type { TelemetrySection } from '../../../config/types.js';
import { effectiveTelemetry } from '../../../decision/telemetry/otel-variables.js';
import type { Io } from '../../io.js';
import { ok, problem, unreachable, warning, type Finding } from './finding.js';

/** An export of nothing, which a collector takes: no bytes in protobuf, an empty object in JSON. */
const nothing = { 'http/protobuf': '', 'http/json': '{}' } as const;

/** Sends the collector an export without spans. */
export async function checkTelemetry(config: TelemetrySection, env: Io['env']): Promise<readonly Finding[]> {
  const { settings, warnings } = effectiveTelemetry(config, env);
  if (settings === null) return [];
  const subject = 'telemetry';
  const sender = new OtlpSender(settings, localFiles);
  const sent = await sender.send(settings.urls.traces, Buffer.from(nothing[settings.protocol]));
  await sender.close();
  const unread = warnings.map((text) => warning(subject, text, 'unset it'));
  const { origin } = new URL(settings.urls.traces);
  switch (sent.kind) {
    case 'answered':
      return [ok(subject, `the collector at ${origin} takes spans`), ...unread];
    case 'later':
      return [
        unreachable(subject, `${origin}: ${sent.why}`, 'check telemetry.otlp.endpoint and the collector'),
        ...unread,
      ];
    case 'failed':
      return [
        problem(subject, `${origin}: ${sent.why}`, 'check telemetry.otlp: endpoint, headers_file and ca_file'),
        ...unread,
      ];
  }
}
