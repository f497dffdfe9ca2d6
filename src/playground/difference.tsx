/** Two policies: what the second changes in effect. */
import { useState } from 'preact/hooks';
import type { JSX } from 'preact';
import { Badge, Quiet } from '../console/parts.js';
import { plural } from '../console/words.js';
import { Editor } from './editor/editor.js';
import type { CheckedConfig, PlaceholderValues } from './engine.js';
import { configSchema } from './schemas.js';
import { OpenButton } from './text-card.js';
import { useComparison, useConfig } from './use-engine.js';

interface DifferenceProps {
  readonly before: string;
  /** The config above, and its text as it is being written. */
  readonly after: CheckedConfig;
  readonly text: string;
  readonly values: PlaceholderValues;
  readonly onBefore: (text: string) => void;
}

export function Difference({ before, after: to, text, values, onBefore }: DifferenceProps): JSX.Element {
  const [unread, setUnread] = useState<string | null>(null);
  const from = useConfig(before, values);
  const found = useComparison(from.config, to.config);
  return (
    <div class="texts">
      <section class="card text" aria-labelledby="before">
        <header>
          <h2 id="before">Before</h2>
          <span class="actions">
            <button type="button" class="small" onClick={() => onBefore(text)}>
              Take the config above
            </button>
            <OpenButton title="Before" onOpen={(file) => onBefore(file.text)} onProblem={setUnread} />
          </span>
        </header>
        <Editor label="Before" text={before} problems={from.problems} schema={configSchema()} onChange={onBefore} />
        {unread === null ? null : <p class="problem">{unread}</p>}
      </section>
      <section class="card" aria-labelledby="diff-title">
        <header>
          <h2 id="diff-title">What the config above changes</h2>
          {found === null ? null : (
            <Badge tone={found.widens ? 'warn' : 'good'}>
              {found.widens ? 'access widens' : 'access does not widen'}
            </Badge>
          )}
        </header>
        {from.config === null ? <Quiet>The config before: {plural(from.problems.length, 'problem')}.</Quiet> : null}
        {to.config === null ? <Quiet>The config above: {plural(to.problems.length, 'problem')}.</Quiet> : null}
        <div class="scroll" tabIndex={0} role="region" aria-labelledby="diff-title">
          <pre class="diff">
            {(found?.lines ?? []).map((line, index) => (
              <span key={index} class={line.startsWith('!') ? 'wider' : ''}>
                {line}
                {'\n'}
              </span>
            ))}
          </pre>
        </div>
        <Quiet>Lines that begin with “!” let through more, or guard less, than before.</Quiet>
      </section>
    </div>
  );
}
