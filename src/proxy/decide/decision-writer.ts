import type { Denial } from '../../decision/denial.js';
import { answerHeaders, headerEdits, removesNames } from '../../decision/decide/allow.js';
import type { Form } from '../../decision/decide/forms.js';
import { withoutHeaders } from '../../decision/http/connection-header.js';
import { valuesOf } from '../../decision/http/header-values.js';
import { problemOf } from '../../decision/http/problem-details.js';
import type { AllowedRequest, ResponseWriter, ResponseWriterHost } from '../inbound/received-request.js';
import { AnswerOnlyWriter } from './answer-only-writer.js';
import { namesOf } from './plan-decision.js';

/** What `ngx_http_auth_request_module` takes for a refusal. Whatever else is no success is an error to it. */
const passedByNginx: ReadonlySet<number> = new Set([401, 403]);

const firstFailure = 500;

/** What a decision is answered with. */
interface WriterOptions {
  readonly form: Form;
  /** Of the request that is described. */
  readonly rawHeaders: readonly string[];
  readonly inner: ResponseWriter;
  readonly host: ResponseWriterHost;
}

/** Answers a proxy that asked: what it is to forward the request with, or what it is to refuse it with. */
export class DecisionWriter extends AnswerOnlyWriter {
  private readonly form: Form;
  private readonly rawHeaders: readonly string[];
  private readonly host: ResponseWriterHost;

  constructor({ form, rawHeaders, inner, host }: WriterOptions) {
    super(inner);
    this.form = form;
    this.rawHeaders = rawHeaders;
    this.host = host;
  }

  allow({ forwarded, response, requestId, activeConfig }: AllowedRequest): void {
    const answered = namesOf(activeConfig);
    const headers = ['X-Request-Id', requestId, 'Cache-Control', 'no-store', ...response];
    if (removesNames(this.form)) {
      const { set, remove } = headerEdits(this.rawHeaders, forwarded, activeConfig.headerRules, answered);
      headers.push(...set, ...this.editsOf(set, remove));
    } else headers.push(...answerHeaders(forwarded, answered));
    this.answer(200, 200, headers, '');
  }

  refuse(reason: Denial, requestId: string): void {
    const { status, headers, body } = problemOf(reason, requestId, () => this.host.challenges());
    if (this.form !== 'nginx') this.answer(status, status, [...headers], body);
    else {
      // nginx knows none but two.
      const told = passedByNginx.has(status) || status >= firstFailure ? status : 403;
      this.answer(
        status,
        told,
        [...inOneLine(headers, 'WWW-Authenticate'), 'X-Sallyport-Status', String(status)],
        body,
      );
    }
  }

  /** Each proxy that removes has its own way to be told. */
  private editsOf(set: readonly string[], remove: readonly string[]): readonly string[] {
    if (this.form === 'envoy') return remove.length === 0 ? [] : ['x-envoy-auth-headers-to-remove', remove.join(',')];
    const names = [...set.filter((_text, i) => i % 2 === 0), 'X-Request-Id'];
    return ['X-Sallyport-Set', names.join(','), 'X-Sallyport-Remove', remove.join(',')];
  }

  private answer(decided: number, status: number, headers: string[], body: string): void {
    this.decided = decided;
    this.inner.sendWhole(status, headers, Buffer.from(body, 'latin1'));
    this.inner.end(null);
  }
}

/**
 * Puts the values of a name into one list: `auth_request` hands on the first line alone before nginx 1.23 (RFC 9110
 * §11.6.1 allows both).
 */
function inOneLine(headers: readonly string[], name: string): readonly string[] {
  const values = valuesOf(headers, name.toLowerCase());
  if (values.length < 2) return headers;
  return [...withoutHeaders(headers, new Set([name.toLowerCase()])), name, values.join(', ')];
}
