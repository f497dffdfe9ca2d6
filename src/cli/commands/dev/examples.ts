import type { CompiledConfig } from '../../../config/types.js';
import { approvesSubject } from '../../../decision/route/approval.js';
import type { Approval, Route, RoutePath } from '../../../decision/route/policy.js';
import { encodeSegment, readTarget } from '../../../decision/http/request-target.js';
import { matchRoute, type RouteTable } from '../../../decision/route/route-table.js';

/** One command line, and the status that it shows. */
export interface Example {
  /** One line with curl, quoted for any POSIX shell. */
  readonly command: string;
  readonly expect: 200 | 401 | 403;
  /** Of the second request of a line that sends two, where it is another one. */
  readonly then?: 401;
  /** What it shows, in words that follow the status. */
  readonly because?: string;
  /** Of a gRPC call, whose status of HTTP is 200 however it ends. */
  readonly grpc_status?: number;
}

/** A request that can be shown. */
export interface Sample {
  readonly method: string;
  /** Request target, encoded. */
  readonly target: string;
  /** The approval that the caller of the example holds; `null` where the route is public. */
  readonly approval: Approval | null;
  /** Names of the issuers whose tokens count here; `null` is all. */
  readonly issuers: ReadonlySet<string> | null;
}

/** What to show of a config. */
export interface Samples {
  /** Let through, with the token of its approval where it has one; `null` where no route can be shown. */
  readonly allowed: Sample | null;
  /** Refused without a token and to a caller nobody approved; `null` where everything is public. */
  readonly refused: Sample | null;
  /** A write that runs once when it is sent twice; `null` where no route reserves by a key. */
  readonly repeated: Sample | null;
}

/** Values for `{x}` and `**`: one of them is no literal of a more specific route. */
const segmentValues = ['1', 'example', 'some-value', 'zzz-sample'] as const;

/** Nothing that a config would name. */
const unknownTarget = '/sallyport-dev-no-such-route';

/**
 * Chooses requests that the routes of a config really get: protected ones before public ones, GET before other methods.
 */
export function chooseSamples({ routes, table }: Pick<CompiledConfig, 'routes' | 'table'>): Samples {
  const samples = routes.flatMap((route) => sampleOf(route, table) ?? []);
  const repeated =
    routes.filter(isRepeatable).flatMap((route) => sampleOf(route, table, writeOf(route)) ?? [])[0] ?? null;
  const guarded = preferRead(samples.filter((sample) => sample.approval !== null));
  return {
    allowed: guarded ?? preferRead(samples),
    refused: guarded ?? unknownSample(table),
    repeated,
  };
}

/** A subject that none of the sample's approvals names. */
export function strangerTo(routes: readonly Route[]): string {
  const approvals = routes.flatMap((route) => route.approvals);
  let stranger = 'stranger';
  while (approvals.some((approval) => approvesSubject(approval, stranger))) stranger += '-x';
  return stranger;
}

/**
 * Writes a sample as a command; `-i` shows the status line and the header of the response.
 *
 * @param credentialFile the header with the token; `-` is standard input.
 * @param options of the connection.
 */
export function curl(
  proxyUrl: string,
  sample: Sample,
  credentialFile: string | null,
  options: readonly string[] = [],
): string {
  const method = sample.method === 'GET' ? [] : sample.method === 'HEAD' ? ['--head'] : ['-X', quote(sample.method)];
  const credential = credentialFile === null ? [] : ['-H', quote(`@${credentialFile}`)];
  const words = ['curl', '-sS', '-i', ...options.map(quote), ...method, ...credential];
  return [...words, quote(proxyUrl + sample.target)].join(' ');
}

/** Writes a gRPC call as a command. @param messageFile the framed message; `null` sends none. */
export function curlGrpc(
  proxyUrl: string,
  { target }: Sample,
  credentialFile: string | null,
  messageFile: string | null,
): string {
  const headers = [
    ...(credentialFile === null ? [] : [`@${credentialFile}`]),
    'content-type: application/grpc',
    'te: trailers',
  ].flatMap((header) => ['-H', quote(header)]);
  // Curl shows nothing binary on a terminal unless it is told to.
  const output = ['-i', '-o', '-'];
  const body = messageFile === null ? ['-X', 'POST'] : ['--data-binary', quote(`@${messageFile}`)];
  return ['curl', '-sS', '--http2-prior-knowledge', ...output, ...headers, ...body, quote(proxyUrl + target)].join(' ');
}

/**
 * Writes a write as a command that sends it twice: two responses, of which the second is marked `Idempotent-Replayed`.
 *
 * @param key of `[A-Za-z0-9-]`, used nowhere before.
 * @param options of the connection.
 */
export function curlTwice(
  proxyUrl: string,
  sample: Sample,
  credentialFile: string,
  key: string,
  options: readonly string[] = [],
): string {
  const url = quote(proxyUrl + sample.target);
  // Curl ends no body with a line of its own: the second response would begin in the middle of one.
  return writeLine(
    sample,
    [...options.map(quote), '-w', quote('\\n')],
    [`@${credentialFile}`, `Idempotency-Key: ${key}`],
    [url, url],
  );
}

/** Writes a write as a command of a caller that has neither a token nor a key. */
export function curlWrite(url: string, sample: Sample): string {
  return writeLine(sample, [], [], [quote(url + sample.target)]);
}

function writeLine(
  { method }: Sample,
  options: readonly string[],
  headers: readonly string[],
  urls: readonly string[],
): string {
  const headerOptions = [...headers, 'Content-Type: application/json'].flatMap((header) => ['-H', quote(header)]);
  const body = ['-d', quote('{"item":"book"}')];
  return ['curl', '-sS', '-i', ...options, '-X', quote(method), ...headerOptions, ...body, ...urls].join(' ');
}

/** A token that passes once would be refused the second time. */
function isRepeatable({ reservation }: Route): boolean {
  return reservation !== null && reservation.key !== null && !reservation.singleUse;
}

function preferRead(samples: readonly Sample[]): Sample | null {
  return samples.find((sample) => sample.method === 'GET') ?? samples[0] ?? null;
}

function sampleOf(route: Route, table: RouteTable, method = methodOf(route)): Sample | null {
  const approval = route.approvals[0] ?? null;
  if (route.access === 'protected' && approval === null) return null;
  for (const path of route.paths) {
    for (const value of segmentValues) {
      const target = targetOf(path, value);
      if (routeOf(table, method, target) === route) return { method, target, approval, issuers: route.issuers };
    }
  }
  return null;
}

function unknownSample(table: RouteTable): Sample | null {
  if (routeOf(table, 'GET', unknownTarget) !== null) return null;
  return { method: 'GET', target: unknownTarget, approval: null, issuers: null };
}

function methodOf({ methods }: Route): string {
  if (methods === null || methods.has('GET')) return 'GET';
  // HEAD answers without a body: not what one wants to see first.
  return [...methods].find((method) => method !== 'HEAD') ?? 'HEAD';
}

/** A method whose repetition matters. */
function writeOf(route: Route): string {
  const isRead = (method: string): boolean => ['GET', 'HEAD', 'OPTIONS'].includes(method);
  return route.methods === null ? 'POST' : ([...route.methods].find((method) => !isRead(method)) ?? methodOf(route));
}

/** What the proxy would make of the request, by the functions that it decides with. */
function routeOf(table: RouteTable, method: string, target: string): Route | null {
  const read = readTarget(target, Number.MAX_SAFE_INTEGER);
  return read.ok ? matchRoute(table, method, read.value) : null;
}

function targetOf(path: RoutePath, value: string): string {
  return path.segments
    .map((segment) => `/${segment.kind === 'literal' ? encodeSegment(segment.text) : value}`)
    .join('');
}

/** Quotes a word for a POSIX shell; words that need none stay readable. */
export function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
