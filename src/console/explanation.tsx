/** One decision, step by step. */
import type { JSX } from 'preact';
import type { ExplanationData } from '../policy-test/explain/format.js';
import { Badge, type Tone } from './parts.js';

type Step = ExplanationData['steps'][number];
type Answer = Pick<ExplanationData, 'decision' | 'status' | 'reason'>;

const tones: Readonly<Record<Step['outcome'], Tone>> = {
  passed: 'good',
  refused: 'bad',
  would_refuse: 'warn',
  not_reached: 'plain',
};

const outcomes: Readonly<Record<Step['outcome'], string>> = {
  passed: 'passed',
  refused: 'refused',
  would_refuse: 'would refuse',
  not_reached: 'not reached',
};

export function Explanation({ data }: { readonly data: ExplanationData }): JSX.Element {
  const { request, steps, headers, route, listener, elsewhere } = data;
  return (
    <div class="explanation">
      <p class="verdict">
        <Verdict data={data} />{' '}
        <code>
          {request.method} {request.path}
        </code>{' '}
        {route === null ? 'has no route' : `on route ${route}`}
        {listener === null ? '' : `, as ${listener} answers`}
      </p>
      {elsewhere.map((other) => (
        <p key={other.listener} class="quiet">
          {other.listener} would answer otherwise: <Verdict data={other} />
        </p>
      ))}
      <ol class="steps">
        {steps.map((step) => (
          <li key={step.step} class={step.outcome}>
            <span class="step">{step.step}</span>
            <Badge tone={tones[step.outcome]}>{outcomes[step.outcome]}</Badge>
            <span class="says">
              {step.says.map((text, index) => (
                <span key={index}>{text}</span>
              ))}
            </span>
          </li>
        ))}
      </ol>
      {headers === null ? null : (
        <details>
          <summary>What the upstream would see</summary>
          <pre>{headers.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>
        </details>
      )}
    </div>
  );
}

function Verdict({ data: { decision, status, reason } }: { readonly data: Answer }): JSX.Element {
  switch (decision) {
    case 'allowed':
      return <Badge tone="good">allowed</Badge>;
    case 'denied':
      return (
        <Badge tone="bad">
          {status} {reason}
        </Badge>
      );
    case 'shadow':
      return <Badge tone="warn">allowed in shadow mode; enforced: {reason}</Badge>;
  }
}
