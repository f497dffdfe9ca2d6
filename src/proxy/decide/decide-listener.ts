/** A listener on which a proxy asks about requests that it forwards itself. */
import type { DecideSettings } from '../../config/types.js';
import { isCheck, isOtherCall } from '../../decision/decide/envoy-check.js';
import { describeRequest } from '../../decision/decide/forms.js';
import { denial } from '../../decision/denial.js';
import { http2Version } from '../../decision/http2/request-head.js';
import { refuse } from '../../lib/result.js';
import type { CheckMessages } from '../../ports/envoy.js';
import type { ReceivedRequest } from '../inbound/received-request.js';
import type { RequestHandler } from '../inbound/http1-request.js';
import { Exchange } from '../exchange/exchange.js';
import type { ExchangeDeps } from '../exchange/exchange-deps.js';
import type { DecideHandler } from '../server.js';
import { answeringHost, describedConnection } from './asking-proxy.js';
import { EnvoyCheck } from './envoy-check.js';
import { DecisionWriter } from './decision-writer.js';
import { planDecision } from './plan-decision.js';

/**
 * Makes what handles the requests of one decide listener.
 *
 * @param messages read and write what Envoy says over gRPC; `null` where nobody asks so.
 */
export function createDecideHandler(
  { form, prefix, accepts, maxHeaderBytes, maxCheckBytes: maxBytes }: DecideSettings,
  messages: CheckMessages | null,
): DecideHandler {
  return {
    name: form,
    plan: (admission, activeConfig, head) => planDecision(admission, activeConfig, head, { form, accepts }),
    serve: (deps, request) =>
      messages !== null && (isCheck(request.head) || isOtherCall(request.head))
        ? new EnvoyCheck(deps, request, { messages, maxBytes, maxHeaderBytes })
        : serveAsked(deps, request, { form, prefix }),
  };
}

function serveAsked(
  deps: ExchangeDeps,
  asking: ReceivedRequest,
  { form, prefix }: Pick<DecideSettings, 'form' | 'prefix'>,
): RequestHandler {
  const described = readAsked(asking, { form, prefix });
  const head = described.ok ? described.value.head : asking.head;
  const exchange: Exchange = new Exchange(deps, {
    head,
    connection: describedConnection(asking, described.ok && described.value.encrypted, (nowMs) => {
      asking.connection.finish(exchange, nowMs);
    }),
    upgrade: null,
    begin: (onOver, onError) => asking.begin(onOver, onError),
    body: () => asking.body(),
    createWriter: (host) =>
      new DecisionWriter({
        form,
        rawHeaders: head.rawHeaders,
        inner: asking.createWriter(answeringHost(host)),
        host,
      }),
  });
  if (!described.ok) exchange.failBody(described.error);
  return exchange;
}

function readAsked(
  { head, connection }: ReceivedRequest,
  { form, prefix }: Pick<DecideSettings, 'form' | 'prefix'>,
): ReturnType<typeof describeRequest> {
  // Only a trusted proxy may ask: nothing is judged for anybody else.
  if (!connection.peer.trusted) return refuse(denial('asking_refused'));
  // Over HTTP/2 only calls of gRPC may ask, and nothing in plain HTTP: a client's request may look like such a call.
  if (head.httpVersion === http2Version) return refuse(denial('description_malformed'));
  return describeRequest(head, form, prefix);
}
