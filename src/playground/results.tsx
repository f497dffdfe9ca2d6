/** Each case: what was decided, what was expected, and why. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { Explanation } from '../console/explanation.js';
import { Badge, Quiet, type Tone } from '../console/parts.js';
import { plural, words } from '../console/words.js';
import type { CaseData } from '../policy-test/suite/reports.js';
import type { Run } from './use-engine.js';

interface ResultsProps {
  readonly run: Run;
  /** Goes to a line of the cases. */
  readonly onShow: (line: number) => void;
}

export function Results({ run: { isDecided, cases, problems }, onShow }: ResultsProps): JSX.Element {
  const [isShort, setShort] = useState(false);
  if (!isDecided) return <Quiet>The config has errors: nothing is decided by it.</Quiet>;
  if (problems.length > 0) return <Quiet>The requests have errors: none is run.</Quiet>;
  if (cases.length === 0) return <Quiet>No request yet. “Write cases” writes some for the policy as it stands.</Quiet>;
  const failed = cases.filter(({ ok }) => !ok);
  return (
    <section class="card wide" aria-labelledby="results-title">
      <header>
        <h2 id="results-title">What becomes of the requests</h2>
        <button type="button" class="small" aria-pressed={isShort} onClick={() => setShort(!isShort)}>
          Failed alone
        </button>
      </header>
      <p role="status">
        {plural(cases.length, 'case')}, {failed.length} failed
      </p>
      <table class="rulings">
        <thead>
          <tr>
            <th scope="col">Case</th>
            <th scope="col">Request</th>
            <th scope="col">Decision</th>
            <th scope="col">
              <span class="hidden">Explain</span>
            </th>
          </tr>
        </thead>
        {(isShort ? failed : cases).map((one) => (
          <CaseRow key={one.name} result={one} onShow={onShow} />
        ))}
      </table>
    </section>
  );
}

const tones: Readonly<Record<CaseData['explanation']['decision'], Tone>> = {
  allowed: 'good',
  denied: 'bad',
  shadow: 'warn',
};

function CaseRow({
  result,
  onShow,
}: {
  readonly result: CaseData;
  readonly onShow: (line: number) => void;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const { name, line, ok, mismatches, explanation } = result;
  const { request, decision, status, reason, missing } = explanation;
  return (
    <tbody class={isOpen ? 'open' : ''}>
      <tr>
        <td data-label="Case">
          <Badge tone={ok ? 'good' : 'bad'}>{ok ? 'as expected' : 'failed'}</Badge> {name}{' '}
          <button type="button" class="line quiet" onClick={() => onShow(line)}>
            line {line}
          </button>
          {mismatches.map((text) => (
            <p class="problem" key={text}>
              {text}
            </p>
          ))}
        </td>
        <td data-label="Request">
          <code class="request">
            {request.method} {request.path}
          </code>
        </td>
        <td data-label="Decision">
          <Badge tone={tones[decision]}>{decision === 'shadow' ? 'passes in shadow mode' : decision}</Badge>{' '}
          <span class="quiet">
            {reason === null ? '' : `${status} ${words(reason)}`}
            {missing.length === 0 ? '' : `: ${missing.join(' ')}`}
          </span>
        </td>
        <td>
          <button type="button" class="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Explain<span class="hidden"> {name}</span>
          </button>
        </td>
      </tr>
      {isOpen ? (
        <tr class="detail">
          <td colSpan={4}>
            <Explanation data={explanation} />
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}
