/** What stands for the placeholders of a config, where the page has neither an environment nor files. */
import type { JSX } from 'preact';
import { placeholdersOf, type PlaceholderValues } from './engine.js';

interface PlaceholderFieldsProps {
  readonly text: string;
  readonly values: PlaceholderValues;
  readonly onChange: (values: PlaceholderValues) => void;
}

export function PlaceholderFields({ text, values, onChange }: PlaceholderFieldsProps): JSX.Element | null {
  const names = placeholdersOf(text);
  if (names.length === 0) return null;
  return (
    <details class="placeholders" open>
      <summary>Placeholders: what they stand for here</summary>
      <p class="quiet">
        No secret is needed to decide: any text of the right form will do. It is neither saved nor sent.
      </p>
      {names.map((name) => (
        <label class="field" key={name}>
          <code>{`\${${name}}`}</code>
          <input
            type="text"
            autocomplete="off"
            spellcheck={false}
            value={values[name] ?? ''}
            onInput={({ currentTarget }) => onChange({ ...values, [name]: currentTarget.value })}
          />
        </label>
      ))}
    </details>
  );
}
