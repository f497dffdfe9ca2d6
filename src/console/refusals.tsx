/** The last requests that were refused, each with the way to its reason. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import type { RefusedRequest } from '../admin/console/refusals.js';
import type { RefusalExplanation } from '../app/console/questions.js';
import { Explanation } from './explanation.js';
import { ask, type Live } from './live.js';
import { Badge, Quiet } from './parts.js';
import { clock, count, words } from './words.js';

type Which = 'all' | 'refused' | 'shadow';

/** How many are shown at first, and how many more each time that somebody asks. */
const fewShown = 30;

const choices: readonly (readonly [Which, string])[] = [
  ['all', 'All'],
  ['refused', 'Refused'],
  ['shadow', 'Would be refused'],
];

export function Refusals({ live: { refusals } }: { readonly live: Live }): JSX.Element {
  const [which, setWhich] = useState<Which>('all');
  const [reason, setReason] = useState('');
  const [sought, setSought] = useState('');
  const [most, setMost] = useState(fewShown);
  const reasons = [...new Set(refusals.map((one) => one.reason))].sort();
  const shown = refusals.filter(
    (one) =>
      (which === 'all' || (which === 'shadow') === (one.decision === 'shadow')) &&
      (reason === '' || one.reason === reason) &&
      (sought === '' || textOf(one).includes(sought.toLowerCase())),
  );
  return (
    <section class="card wide" aria-labelledby="refusals-title">
      <header>
        <h2 id="refusals-title">Last refusals</h2>
        <span class="quiet">{count(shown.length)}; the last 25 of each reason are kept</span>
      </header>
      <div class="filters">
        <fieldset class="choice">
          <legend>Show</legend>
          {choices.map(([name, label]) => (
            <label key={name}>
              <input type="radio" name="which" checked={which === name} onChange={() => setWhich(name)} />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          Reason
          <select value={reason} onChange={({ currentTarget }) => setReason(currentTarget.value)}>
            <option value="">any</option>
            {reasons.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="field grow">
          Find
          <input
            type="search"
            placeholder="path, caller, request id"
            value={sought}
            onInput={({ currentTarget }) => setSought(currentTarget.value)}
          />
        </label>
      </div>
      {shown.length === 0 ? (
        <Quiet>Nothing was refused{refusals.length === 0 ? ' since the proxy started.' : ' that is meant here.'}</Quiet>
      ) : (
        <table class="refusals">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Reason</th>
              <th scope="col">Request</th>
              <th scope="col">Route</th>
              <th scope="col">Caller</th>
              <th scope="col">
                <span class="hidden">Explain</span>
              </th>
            </tr>
          </thead>
          {shown.slice(0, most).map((one) => (
            <Refusal key={one.id} refusal={one} />
          ))}
        </table>
      )}
      {shown.length > most ? (
        <button type="button" class="small more" onClick={() => setMost(most + fewShown)}>
          Show more
        </button>
      ) : null}
    </section>
  );
}

function textOf({ path, subject, request_id: id, route, method }: RefusedRequest): string {
  return `${method} ${path} ${subject ?? ''} ${id} ${route}`.toLowerCase();
}

function Refusal({ refusal }: { readonly refusal: RefusedRequest }): JSX.Element {
  const [answer, setAnswer] = useState<RefusalExplanation | string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const toggle = (): void => {
    setOpen(!isOpen);
    if (isOpen) return;
    setAnswer(null);
    ask<RefusalExplanation>('/console/explain', { refusal: String(refusal.id) }).then(setAnswer, (error: unknown) =>
      setAnswer(error instanceof Error ? error.message : 'unknown'),
    );
  };
  const id = `explanation-${refusal.id}`;
  return (
    <tbody class={isOpen ? 'open' : ''}>
      <tr>
        <td data-label="Time">
          <time dateTime={refusal.at}>{clock(refusal.at)}</time>
        </td>
        <td data-label="Reason">
          <Badge tone={refusal.decision === 'shadow' ? 'warn' : 'bad'}>{words(refusal.reason)}</Badge>{' '}
          <span class="quiet">{refusal.decision === 'shadow' ? 'passed in shadow' : refusal.status}</span>
        </td>
        <td data-label="Request">
          <code class="request">
            {refusal.method} {refusal.path}
            {refusal.is_cut ? '…' : ''}
          </code>
        </td>
        <td data-label="Route">{refusal.route}</td>
        <td data-label="Caller">{refusal.subject ?? <span class="quiet">not verified</span>}</td>
        <td>
          <button type="button" class="small" aria-expanded={isOpen} aria-controls={id} onClick={toggle}>
            Explain
            <span class="hidden">
              {' '}
              {refusal.method} {refusal.path}
            </span>
          </button>
        </td>
      </tr>
      {isOpen ? (
        <tr class="detail">
          <td colSpan={6} id={id}>
            <div role="status">
              {answer === null ? <Quiet>Asking…</Quiet> : null}
              {typeof answer === 'string' ? <p class="problem">{answer}</p> : null}
            </div>
            <Details refusal={refusal} answer={typeof answer === 'string' ? null : answer} />
          </td>
        </tr>
      ) : null}
    </tbody>
  );
}

function Details({
  refusal,
  answer,
}: {
  readonly refusal: RefusedRequest;
  readonly answer: RefusalExplanation | null;
}): JSX.Element {
  return (
    <>
      <p class="quiet">
        Request <code>{refusal.request_id}</code>
        {refusal.issuer === null ? null : ` · issuer ${refusal.issuer}`}
        {refusal.missing.length === 0 ? null : ` · missing: ${refusal.missing.join(' ')}`}
      </p>
      {answer === null ? null : (
        <>
          <p>
            {answer.is_same
              ? 'The rules in force now refuse it for the same reason.'
              : `The rules in force now come to another end than ${refusal.reason}: what was shown is not kept, or the rules or the revocations have changed.`}{' '}
            <span class="quiet">{answer.notes.join(' ')}</span>
          </p>
          <Explanation data={answer.explanation} />
        </>
      )}
    </>
  );
}
