/** Paste a set of claims, and see what they may do. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import type { ClaimsAnswer } from '../app/console/questions.js';
import type { ExplanationData } from '../policy-test/explain/format.js';
import { Explanation } from './explanation.js';
import { ask } from './live.js';
import { Badge, Quiet, type Tone } from './parts.js';
import { plural, words } from './words.js';

const example = '{\n  "sub": "checkout",\n  "permissions": ["orders:read"]\n}';

type Ruling = ClaimsAnswer['routes'][number];

const tones: Readonly<Record<Ruling['decision'], Tone>> = { allowed: 'good', denied: 'bad', shadow: 'warn' };

export function Claims(): JSX.Element {
  const [text, setText] = useState(example);
  const [kind, setKind] = useState<'claims' | 'session'>('claims');
  const [answer, setAnswer] = useState<ClaimsAnswer | string | null>(null);
  const [asked, setAsked] = useState('');
  const tryThem = (event: Event): void => {
    event.preventDefault();
    const claims = payloadOf(text);
    setAsked(claims);
    ask<ClaimsAnswer>('/console/claims', { kind, claims }).then(setAnswer, (error: unknown) =>
      setAnswer(error instanceof Error ? error.message : 'unknown'),
    );
  };
  return (
    <section class="card wide" aria-labelledby="claims-title">
      <header>
        <h2 id="claims-title">What may these claims do?</h2>
      </header>
      <form class="claims" onSubmit={tryThem}>
        <label for="claims">
          Claims, as JSON: the payload of a token. No token is asked for, and none is verified.
        </label>
        <textarea
          id="claims"
          rows={7}
          spellcheck={false}
          autocomplete="off"
          value={text}
          aria-invalid={typeof answer === 'string'}
          aria-describedby="claims-problem"
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <div class="filters">
          <fieldset class="choice">
            <legend>As</legend>
            <label>
              <input type="radio" name="kind" checked={kind === 'claims'} onChange={() => setKind('claims')} />
              <span>Service token</span>
            </label>
            <label>
              <input type="radio" name="kind" checked={kind === 'session'} onChange={() => setKind('session')} />
              <span>Session</span>
            </label>
          </fieldset>
          <button type="submit">Try them</button>
        </div>
        <p class="problem" id="claims-problem" role="alert">
          {typeof answer === 'string' ? answer : ''}
        </p>
      </form>
      {answer === null || typeof answer === 'string' ? null : (
        <Rulings answer={answer} claims={kind === 'claims' ? asked : null} />
      )}
    </section>
  );
}

/** A whole token is cut down to its payload here: it goes nowhere. */
function payloadOf(text: string): string {
  const [, payload] = /^\s*[\w-]+\.([\w-]+)\.[\w-]*\s*$/.exec(text) ?? [];
  if (payload === undefined) return text;
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (char) =>
      char.charCodeAt(0),
    );
    return new TextDecoder().decode(bytes);
  } catch {
    return text;
  }
}

function Rulings({ answer, claims }: { readonly answer: ClaimsAnswer; readonly claims: string | null }): JSX.Element {
  const allowed = answer.routes.filter(({ decision }) => decision !== 'denied').length;
  return (
    <>
      <p role="status">
        <strong>
          {allowed} of {plural(answer.routes.length, 'route')}
        </strong>{' '}
        may be used. <span class="quiet">{answer.notes.join('; ')}</span>
      </p>
      <table class="rulings">
        <thead>
          <tr>
            <th scope="col">Route</th>
            <th scope="col">Tried with</th>
            <th scope="col">Decision</th>
            <th scope="col">
              <span class="hidden">Explain</span>
            </th>
          </tr>
        </thead>
        {answer.routes.map((ruling) => (
          <RulingRow key={ruling.route} ruling={ruling} claims={claims} />
        ))}
      </table>
      {answer.not_tried.length === 0 ? null : <Quiet>Not tried: {answer.not_tried.join(', ')}</Quiet>}
    </>
  );
}

function RulingRow({ ruling, claims }: { readonly ruling: Ruling; readonly claims: string | null }): JSX.Element {
  const [explained, setExplained] = useState<ExplanationData | string | null>(null);
  const { route, method, path, decision, reason, missing } = ruling;
  const toggle = (): void => {
    if (explained !== null) {
      setExplained(null);
      return;
    }
    ask<ExplanationData>('/console/explain', { method, path, ...(claims === null ? {} : { claims }) }).then(
      setExplained,
      (error: unknown) => setExplained(error instanceof Error ? error.message : 'unknown'),
    );
  };
  return (
    <tbody class={explained === null ? '' : 'open'}>
      <tr>
        <td data-label="Route">{route}</td>
        <td data-label="Tried with">
          <code class="request">
            {method} {path}
          </code>
        </td>
        <td data-label="Decision">
          <Badge tone={tones[decision]}>{decision === 'shadow' ? 'passes in shadow mode' : decision}</Badge>{' '}
          <span class="quiet">
            {reason === null ? '' : words(reason)}
            {missing.length === 0 ? '' : `: ${missing.join(' ')}`}
          </span>
        </td>
        <td>
          {claims === null ? null : (
            <button type="button" class="small" aria-expanded={explained !== null} onClick={toggle}>
              Explain<span class="hidden"> route {route}</span>
            </button>
          )}
        </td>
      </tr>
      {explained === null ? null : (
        <tr class="detail">
          <td colSpan={4}>
            {typeof explained === 'string' ? <p class="problem">{explained}</p> : <Explanation data={explained} />}
          </td>
        </tr>
      )}
    </tbody>
  );
}
