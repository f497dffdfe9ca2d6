/** Load over HTTP/2 by `h2load`, of Debian's package `nghttp2-client`. */
import { runToEnd } from './program.js';

export interface Http2Load {
  readonly url: string;
  /** Connections that are open all the time. */
  readonly connections: number;
  /** Requests under way on each of them. */
  readonly streams: number;
  readonly seconds: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A file that each request has as its body; `GET` without. */
  readonly bodyFile?: string;
  /** Bytes of the body of each answer. A refusal in gRPC's form is a 200 as well, but has none. */
  readonly answerBytes: number;
}

export interface Http2LoadResult {
  /** Answers. */
  readonly requests: number;
  /** Answers that were no success, or none at all. */
  readonly wrong: number;
  readonly seconds: number;
}

/** What `h2load` is to be told to keep so many requests under way for a while. */
export function h2loadArguments(load: Http2Load): readonly string[] {
  const { url, connections, streams, seconds, headers, bodyFile } = load;
  return [
    ...['-t', '1', '-c', String(connections), '-m', String(streams)],
    ...['-D', `${String(Math.round(seconds * 1_000))}ms`],
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...(bodyFile === undefined ? [] : ['-d', bodyFile]),
    url,
  ];
}

/** Reads what `h2load` prints. */
export function readH2load(
  output: string,
  { seconds, answerBytes }: Pick<Http2Load, 'seconds' | 'answerBytes'>,
): Http2LoadResult {
  const done = /(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout/.exec(output)?.slice(1) ?? [];
  const [requests = 0, succeeded = 0, ...broken] = done.map(Number);
  const successes = Number(/status codes: (\d+) 2xx/.exec(output)?.[1] ?? 0);
  const dataBytes = Number(/\((\d+)\) data/.exec(output)?.[1] ?? 0);
  const whole = answerBytes === 0 ? requests : Math.floor(dataBytes / answerBytes);
  const right = Math.min(succeeded, successes, whole);
  return { requests, wrong: Math.max(0, requests - right) + Math.max(0, ...broken), seconds };
}

/** So many requests and no more, however long they take. */
export interface CountedLoad extends Pick<Http2Load, 'url' | 'connections' | 'streams' | 'headers' | 'bodyFile'> {
  readonly requests: number;
}

export interface CountedLoadResult {
  readonly succeeded: number;
  /** Streams that were reset, or whose connection ended, and requests that nobody could send. */
  readonly broken: number;
  /** Answers of 2xx, 3xx, 4xx and 5xx. */
  readonly statuses: readonly number[];
  /** Bytes of all bodies together. */
  readonly bodyBytes: number;
}

/** Has `h2load` make so many requests. */
export async function runH2load(load: CountedLoad): Promise<CountedLoadResult> {
  const { url, requests, connections, streams, headers, bodyFile } = load;
  const { code, stdout, stderr } = await runToEnd('h2load', [
    ...['-t', '1', '-n', String(requests), '-c', String(connections), '-m', String(streams)],
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...(bodyFile === undefined ? [] : ['-d', bodyFile]),
    url,
  ]);
  const counts = /(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout/.exec(stdout)?.slice(1).map(Number);
  if (code !== 0 || counts === undefined) throw new Error(`h2load ended with ${String(code)}: ${stdout}${stderr}`);
  const [succeeded = 0, ...broken] = counts;
  const statuses = /status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(stdout)?.slice(1).map(Number) ?? [];
  return {
    succeeded,
    broken: broken.reduce((sum, count) => sum + count, 0),
    statuses,
    bodyBytes: Number(/\((\d+)\) data/.exec(stdout)?.[1] ?? 0),
  };
}
