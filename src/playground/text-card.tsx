/** A text with its editor, what is wrong in it as a list, and how it comes in and goes out. */
import { useRef, useState } from 'preact/hooks';
import type { ComponentChildren, JSX } from 'preact';
import type { JsonSchema } from '../config/docs/json-schema.js';
import type { Note, Problem } from '../config/load/report.js';
import { Badge } from '../console/parts.js';
import { Editor } from './editor/editor.js';
import { save, type NamedText } from './files.js';

interface TextCardProps {
  readonly title: string;
  readonly file: NamedText;
  readonly problems: readonly Problem[];
  readonly notes?: readonly Note[];
  readonly schema: JsonSchema;
  readonly goTo?: { readonly line: number } | null;
  readonly onChange: (file: NamedText) => void;
  /** Writes cases; `null` where the config has errors, and left out where the text is no policy test. */
  readonly onDraft?: (() => void) | null;
  readonly children?: ComponentChildren;
}

export function TextCard(props: TextCardProps): JSX.Element {
  const { title, file, problems, notes = [], schema, goTo = null, onChange, onDraft, children } = props;
  const [sought, setSought] = useState<{ readonly line: number } | null>(null);
  const [unread, setUnread] = useState<string | null>(null);
  const id = title.replaceAll(' ', '-').toLowerCase();
  const last = useRef(goTo);
  const asked = goTo === last.current ? sought : goTo;
  if (goTo !== last.current) last.current = goTo;
  return (
    <section class="card text" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        <span class="actions">
          {onDraft === undefined ? null : (
            <button
              type="button"
              class="small"
              disabled={onDraft === null}
              title="Replaces them by cases for the policy as it stands"
              onClick={onDraft ?? undefined}
            >
              Write cases
            </button>
          )}
          <OpenButton title={title} onOpen={onChange} onProblem={setUnread} />
          <button type="button" class="small" onClick={() => save(file)}>
            Save<span class="hidden"> {title}</span>
          </button>
        </span>
      </header>
      <Editor
        label={title}
        text={file.text}
        problems={problems}
        schema={schema}
        goTo={asked}
        onChange={(text) => onChange({ ...file, text })}
      />
      {unread === null ? null : <p class="problem">{unread}</p>}
      <ul class="problems" aria-label={`Problems: ${title}`}>
        {problems.map(({ line, column, severity, message, allowed }) => (
          <li key={`${line}:${column} ${message}`}>
            <button type="button" class="line" onClick={() => setSought({ line })}>
              <Badge tone={severity === 'error' ? 'bad' : 'warn'}>line {line}</Badge>
            </button>{' '}
            {message}; <span class="quiet">allowed: {allowed}</span>
          </li>
        ))}
        {notes.map(({ line, column, message }) => (
          <li key={`${line}:${column} ${message}`}>
            <button type="button" class="line" onClick={() => setSought({ line })}>
              <Badge tone="plain">line {line}</Badge>
            </button>{' '}
            {message}
          </li>
        ))}
      </ul>
      {children}
    </section>
  );
}

/** More than a config may have, so that the page says by itself that one is too long. */
const maxBytes = 4 * 1024 * 1024;

interface OpenButtonProps {
  readonly title: string;
  readonly onOpen: (file: NamedText) => void;
  readonly onProblem: (problem: string | null) => void;
}

export function OpenButton({ title, onOpen, onProblem }: OpenButtonProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-hidden="true"
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? [];
          if (file === undefined) return;
          currentTarget.value = '';
          onProblem(file.size > maxBytes ? `${file.name} is longer than 4 MiB` : null);
          if (file.size <= maxBytes) file.text().then((text) => onOpen({ name: file.name, text }), reportError);
        }}
      />
      <button type="button" class="small" onClick={() => input.current?.click()}>
        Open…<span class="hidden"> {title}</span>
      </button>
    </>
  );
}
