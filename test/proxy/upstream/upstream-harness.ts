/** An upstream without the rest of the proxy: requests go straight in, and what their sink heard comes out. */
import { setTimeout as delay } from 'node:timers/promises';
import { usualUpstream } from '../../../src/config/sections/upstream.js';
import type { UpstreamSettings } from '../../../src/config/types.js';
import type { Denial } from '../../../src/decision/denial.js';
import type { UpstreamRequest } from '../../../src/proxy/upstream/call.js';
import { createUpstream, type Upstream, type UpstreamCall } from '../../../src/proxy/upstream/pool/pool.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

/** What one sink heard, in order and so far. */
export interface Heard {
  readonly call: UpstreamCall;
  readonly status: () => number | null;
  readonly body: () => Buffer;
  /** How often it ended. */
  readonly ends: () => number;
  /** `null` where it ended well or not yet. */
  readonly failure: () => Denial | null;
  /** Names and values in turn; `null` where none came. */
  readonly trailers: () => readonly string[] | null;
}

export interface UpstreamHarness {
  readonly upstream: Upstream;
  /** Sends a GET unless told otherwise. `takes` answers `onData`; nothing means that there is room. */
  readonly send: (
    request?: Partial<UpstreamRequest>,
    takes?: (bytes: Buffer, resume: () => void) => boolean,
    onHead?: (status: number, fields: readonly string[]) => void,
    onEnd?: () => void,
  ) => Heard;
  /** The same, when it ended: `200 hello`, or the reason of the failure. */
  readonly ask: (request?: Partial<UpstreamRequest>) => Promise<string>;
}

/**
 * Until a connection that was released before has rested. Rests end behind the timers of a turn, of which the next may
 * be late.
 */
export async function rest(): Promise<void> {
  for (const ms of [10, 1]) {
    await delay(ms);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export function settingsOf(url: string, more: Partial<UpstreamSettings> = {}): UpstreamSettings {
  return {
    ...usualUpstream(url),
    connectTimeoutMs: 20_000,
    idleTimeoutMs: 30_000,
    maxConnections: 8,
    sensitiveHeaders: ['authorization'],
    ...more,
  };
}

export function startUpstream(
  t: Scope,
  url: string,
  more: Partial<UpstreamSettings> = {},
  ca: string | null = null,
): UpstreamHarness {
  const settings = settingsOf(url, more);
  const upstream = createUpstream(settings, ca);
  t.teardown(upstream.close);
  const send: UpstreamHarness['send'] = (
    request = {},
    takes = () => true,
    onHead = () => undefined,
    onEnd = () => undefined,
  ) => {
    let status: number | null = null;
    let ends = 0;
    let failure: Denial | null = null;
    let trailers: readonly string[] | null = null;
    const pieces: Buffer[] = [];
    const whole: UpstreamRequest = {
      holder: 'checkout',
      method: 'GET',
      target: '/',
      headers: ['Host', 'a'],
      body: null,
      responseTimeoutMs: settings.responseTimeoutMs,
      ...request,
    };
    const call = upstream.send(whole, {
      onHead: (code, fields) => {
        status = code;
        onHead(code, fields);
      },
      onData: (bytes) => {
        pieces.push(bytes);
        return takes(bytes, () => call.resume());
      },
      onEnd: (last) => {
        ends += 1;
        trailers = last;
        onEnd();
      },
      onError: (reason) => {
        ends += 1;
        failure = reason;
        onEnd();
      },
    });
    return {
      call,
      status: () => status,
      body: () => Buffer.concat(pieces),
      ends: () => ends,
      failure: () => failure,
      trailers: () => trailers,
    };
  };
  return {
    upstream,
    send,
    ask: async (request) => {
      const heard = send(request);
      await until('it ended', () => heard.ends() > 0);
      return heard.failure()?.reason ?? `${String(heard.status())} ${heard.body().toString('latin1')}`;
    },
  };
}

/** Asks for `/` unless told otherwise, and resolves with the body, or with why there is none. */
export function ask(upstream: Upstream, request: Partial<UpstreamRequest> = {}): Promise<string> {
  return new Promise((resolve) => {
    let body = '';
    upstream.send(
      {
        holder: 'a',
        method: 'GET',
        target: '/',
        headers: ['Host', 'a'],
        body: null,
        responseTimeoutMs: 20_000,
        ...request,
      },
      {
        onHead: () => undefined,
        onData: (bytes) => {
          body += bytes.toString();
          return true;
        },
        onEnd: () => resolve(body),
        onError: ({ reason }) => resolve(reason),
      },
    );
  });
}

/** Errors that nobody takes from now on, each of which would end the process. */
export function uncaughtErrors(t: Scope): readonly unknown[] {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', note);
  t.teardown(() => process.off('uncaughtException', note));
  return uncaught;
}
