/** Small parts that the views share. */
import type { ComponentChildren, JSX } from 'preact';

export type Tone = 'good' | 'warn' | 'bad' | 'plain';

const marks: Readonly<Record<Tone, string>> = { good: '✓', warn: '!', bad: '✕', plain: '·' };

/** A state as a sign and a word: colour is not the only one to tell. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{marks[tone]}</span> {children}
    </span>
  );
}

interface CardProps {
  readonly title: string;
  readonly tone?: Tone;
  readonly state?: string;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

export function Card({ title, tone = 'plain', state, wide = false, children }: CardProps): JSX.Element {
  return (
    <section class={wide ? 'card wide' : 'card'}>
      <header>
        <h2>{title}</h2>
        {state === undefined ? null : <Badge tone={tone}>{state}</Badge>}
      </header>
      {children}
    </section>
  );
}

/** A name and a value, one below the other. */
export function Facts({ rows }: { readonly rows: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Quiet({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <p class="none">{children}</p>;
}
