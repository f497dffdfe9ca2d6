import { escapeControls } from '../../lib/text.js';
import { isAnsweredHere } from '../simulate/decide.js';
import { unreservedWords } from './policy.js';
import { responseOf } from '../../decision/denial.js';
import { type Explained, explain, type ExplainedStep } from './explanation.js';

const marks: Readonly<Record<ExplainedStep['outcome'], string>> = {
  passed: 'ok',
  refused: 'REFUSED',
  would_refuse: 'SHADOW',
  not_reached: '-',
};

/** The whole explanation as lines for people. */
export function explanationLines(explained: Explained): readonly string[] {
  const { steps, headers } = explain(explained);
  const { head } = explained;
  return [
    `${head.method} ${head.target}`,
    ...steps.flatMap(stepLines),
    ...(headers === null
      ? []
      : ['  the upstream would see', ...headers.map(([name, value]) => `    ${name}: ${value}`)]),
    ...elsewhereLines(explained),
    conclusion(explained),
  ].map(escapeControls);
}

/** What other listeners would say of the same request. */
function elsewhereLines({ ruling: { elsewhere } }: Pick<Explained, 'ruling'>): readonly string[] {
  return elsewhere.map((other) => {
    const reserved = unreservedWords(other);
    const note = reserved === null ? '' : `; ${reserved}`;
    return `  ${other.listener?.name ?? 'listen'} would answer otherwise: ${conclusion({ ruling: other })}${note}`;
  });
}

/** The decision in one line. */
function conclusion({ ruling }: Pick<Explained, 'ruling'>): string {
  const { decision, status, reason, route } = ruling;
  const where = route === null ? 'no route' : `route ${route.name}`;
  if (isAnsweredHere(ruling)) return 'allowed: answered by Sallyport';
  if (reason === null) return `allowed: ${where}`;
  if (decision === 'shadow') {
    return `allowed in shadow mode: ${where}; enforced it would be ${responseOf(reason).status} ${reason}`;
  }
  return `denied: ${status} ${reason} (${where})`;
}

function stepLines({ step, outcome, says }: ExplainedStep): readonly string[] {
  const start = `  ${step.padEnd(11)} ${marks[outcome].padEnd(7)}`;
  const [first = '', ...rest] = says;
  return [`${start} ${first}`.trimEnd(), ...rest.map((text) => `${' '.repeat(start.length)} ${text}`)];
}

/** The whole explanation for programs. */
export interface ExplanationData extends Pick<ReturnType<typeof explain>, 'headers' | 'steps'> {
  readonly request: { readonly method: string; readonly path: string };
  readonly decision: Explained['ruling']['decision'];
  readonly status: number;
  readonly reason: Explained['ruling']['reason'];
  readonly missing: readonly string[];
  readonly route: string | null;
  readonly mode: 'enforce' | 'shadow' | null;
  readonly principal: object | null;
  readonly client_certificate: object | null;
  readonly reservation: object | null;
  /** The decide listener whose answer this is; null is where callers are served. */
  readonly listener: string | null;
  /** What decide listeners answer that is not the same. */
  readonly elsewhere: readonly Pick<ExplanationData, 'listener' | 'decision' | 'status' | 'reason'>[];
}

export function explanationData(explained: Explained): ExplanationData {
  const {
    head,
    certificate = null,
    ruling: { decision, status, reason, denial, route, principal, preparation, listener, elsewhere },
  } = explained;
  const { steps, headers } = explain(explained);
  return {
    request: { method: head.method, path: head.target },
    decision,
    status,
    reason,
    missing: denial?.missing ?? [],
    route: route?.name ?? null,
    mode: route?.mode ?? null,
    principal:
      principal === null
        ? null
        : {
            kind: principal.kind,
            issuer: principal.issuerName,
            subject: principal.subject,
            permissions: principal.permissions,
            token_id: principal.tokenId,
            key_id: principal.keyId,
            expires_at: principal.expiresAtS,
          },
    client_certificate:
      certificate === null
        ? null
        : { name: certificate.name, thumbprint: certificate.digest, verified: certificate.isVerified },
    reservation:
      preparation === null
        ? null
        : {
            operation: preparation.rules.operation,
            record: preparation.recordId,
            single_use: preparation.rules.singleUse,
          },
    listener: listener?.name ?? null,
    elsewhere: elsewhere.map((other) => ({
      listener: other.listener?.name ?? null,
      decision: other.decision,
      status: other.status,
      reason: other.reason,
    })),
    headers,
    steps,
  };
}
