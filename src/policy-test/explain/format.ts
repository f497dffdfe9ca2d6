import { escapeControls } from '../../lib/text.js';
import { isAnsweredHere } from '../simulate/decide.js';
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
    conclusion(explained),
  ].map(escapeControls);
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
}

export function explanationData(explained: Explained): ExplanationData {
  const {
    head,
    certificate = null,
    ruling: { decision, status, reason, denial, route, principal, preparation },
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
    headers,
    steps,
  };
}
