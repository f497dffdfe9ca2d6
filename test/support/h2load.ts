/** Load over HTTP/2 by `h2load`, of Debian's package `nghttp2-client`. */

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
