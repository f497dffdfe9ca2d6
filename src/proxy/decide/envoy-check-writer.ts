import { headerEdits } from '../../decision/decide/allow.js';
import { denial, responseOf, type Denial } from '../../decision/denial.js';
import { frameMessage } from '../../decision/grpc/messages.js';
import { encodeGrpcMessage, grpcCodeOf } from '../../decision/grpc/refusal.js';
import { grpcNumberOf, type GrpcCode } from '../../decision/grpc/status.js';
import { problemOf } from '../../decision/http/problem-details.js';
import type { CheckMessages } from '../../ports/envoy.js';
import type { AllowedRequest, ResponseWriter, ResponseWriterHost } from '../inbound/received-request.js';
import { AnswerOnlyWriter } from './answer-only-writer.js';
import { namesOf } from './plan-decision.js';

/** Ends calls whose caller waits no longer. */
const late: GrpcCode = 'DEADLINE_EXCEEDED';

const contentType = ['content-type', 'application/grpc'];

/** What a call of `Check` is answered with. */
interface WriterOptions {
  readonly messages: CheckMessages;
  /** Of the request that is described. */
  readonly rawHeaders: readonly string[];
  /** How the call itself ends; `null` where a message answers it. */
  readonly failsAs: GrpcCode | null;
  readonly inner: ResponseWriter;
  readonly host: ResponseWriterHost;
}

/** Answers a call of `Check`: by a message about the request that it describes, or by a failure of the call. */
export class EnvoyCheckWriter extends AnswerOnlyWriter {
  private readonly options: WriterOptions;
  private isLate: boolean;

  constructor(options: WriterOptions) {
    super(options.inner);
    this.options = options;
    this.isLate = options.failsAs === late;
  }

  allow({ forwarded, response, requestId, activeConfig }: AllowedRequest): void {
    const { messages, rawHeaders } = this.options;
    const { set, remove } = headerEdits(rawHeaders, forwarded, activeConfig.headerRules, namesOf(activeConfig));
    this.answer(200, messages.allowed({ set: [...set, 'x-request-id', requestId], remove, response }));
  }

  refuse(reason: Denial, requestId: string): void {
    const { messages, failsAs, host } = this.options;
    if (failsAs !== null) this.fail(failsAs, reason, requestId);
    else {
      const { status, headers, body } = problemOf(reason, requestId, () => host.challenges());
      const number = grpcNumberOf(grpcCodeOf(reason.reason));
      this.answer(status, messages.refused({ status, code: number, headers, body }));
    }
  }

  /** The deadline of the call has passed: if it now ends without an answer, it ends with `DEADLINE_EXCEEDED`. */
  expire(): void {
    this.isLate = true;
  }

  override abort(): void {
    if (this.isLate && this.decided === 0) this.fail(late, denial('caller_gone'), '');
    else super.abort();
  }

  private answer(decided: number, message: Uint8Array): void {
    this.decided = decided;
    this.inner.begin(200, [...contentType]);
    this.inner.write(Buffer.from(frameMessage(message)));
    this.inner.end(['grpc-status', String(grpcNumberOf('OK'))]);
  }

  /**
   * Ends the call with its head alone. That is no 200, as it would be else: a proxy that asks in the words of HTTP, and
   * over HTTP/2 by mistake, takes each 200 for an allow. Clients of gRPC go by `grpc-status` all the same
   * (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
   */
  private fail(code: GrpcCode, reason: Denial, requestId: string): void {
    const { status, title } = responseOf(reason.reason);
    this.decided = status;
    this.inner.begin(status, [
      ...contentType,
      'grpc-status',
      String(grpcNumberOf(code)),
      'grpc-message',
      encodeGrpcMessage(title),
      ...(requestId === '' ? [] : ['x-request-id', requestId]),
    ]);
    this.inner.end(null);
  }
}
