import { requestTrailers, responseTrailers } from '../../decision/http/trailers.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { http2Version } from '../../decision/http2/request-head.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';

/** The exchange that a trailer section is part of. */
interface TrailersOf {
  readonly admission: Pick<Admission, 'headers' | 'route'>;
  readonly head: RequestHead;
  readonly activeConfig: ActiveConfig;
}

/**
 * What goes on of a trailer section, names and values in turn; `null` where nothing does. Trailers of a request go to
 * upstreams of HTTP/2 alone: one of HTTP/1.1 has no way to say that it takes them (RFC 9110 §6.5.1).
 */
export function passedTrailers(
  of: 'request' | 'response',
  trailers: readonly string[],
  { admission: { headers, route }, head, activeConfig }: TrailersOf,
): readonly string[] | null {
  const { http2 } = activeConfig.config.upstream;
  const context = {
    rules: activeConfig.headerRules,
    isAskedFor: of === 'request' ? http2 : headers.takesTrailers,
    isGrpcOverHttp2: route.isGrpc && head.httpVersion === http2Version && http2,
  };
  return of === 'request' ? requestTrailers(trailers, context) : responseTrailers(trailers, context);
}
