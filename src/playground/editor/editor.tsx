/**
 * A text that is edited, with what is wrong in it where it is wrong. It stands in a shadow tree: there the editor's
 * styles are adopted, and the page's policy need not let styles in.
 */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, indentOnInput, indentUnit } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { EditorState, type Text } from '@codemirror/state';
import { EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { JSX } from 'preact';
import type { JsonSchema } from '../../config/docs/json-schema.js';
import type { Problem } from '../../config/load/report.js';
import { completeBy } from './completion/complete.js';
import { look } from './look.js';

interface EditorProps {
  readonly label: string;
  readonly text: string;
  readonly problems: readonly Problem[];
  /** What is proposed while it is written; `null` is nothing. */
  readonly schema: JsonSchema | null;
  /** The line to go to, from 1, each time that it is another object. */
  readonly goTo?: { readonly line: number } | null;
  readonly onChange: (text: string) => void;
}

export function Editor({ label, text, problems, schema, goTo = null, onChange }: EditorProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const changed = useRef(onChange);
  changed.current = onChange;

  useEffect(() => {
    if (host.current === null) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: 'open' });
    const opened = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          lintGutter(),
          history(),
          indentOnInput(),
          indentUnit.of('  '),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          yaml(),
          look,
          autocompletion(schema === null ? {} : { override: [completeBy(schema)] }),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', autocapitalize: 'off' }),
          // Tab goes on to the next part of the page, as everywhere.
          keymap.of([
            { key: 'Mod-]', run: indentMore },
            { key: 'Mod-[', run: indentLess },
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...lintKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) changed.current(state.doc.toString());
          }),
        ],
      }),
    });
    view.current = opened;
    return () => {
      opened.destroy();
    };
  }, []);

  // Before the next key comes: later, it would be lost.
  useLayoutEffect(() => {
    const { current } = view;
    if (current === null || current.state.doc.toString() === text) return;
    current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const { current } = view;
    if (current === null) return;
    current.dispatch(
      setDiagnostics(
        current.state,
        problems.map((problem) => diagnosticOf(problem, current.state.doc)),
      ),
    );
  }, [problems]);

  useEffect(() => {
    const { current } = view;
    if (current === null || goTo === null) return;
    const { from } = current.state.doc.line(Math.min(goTo.line, current.state.doc.lines));
    current.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'center' }) });
    current.focus();
  }, [goTo]);

  return <div class="editor" ref={host} />;
}

/** At the word where the problem is. */
function diagnosticOf({ line, column, severity, message, allowed }: Problem, doc: Text): Diagnostic {
  const { from: start, to: end, text } = doc.line(Math.min(line, doc.lines));
  const from = Math.min(start + column - 1, end);
  const word = /^[^\s:,[\]{}]+/.exec(text.slice(from - start))?.[0] ?? '';
  return { from, to: Math.min(from + word.length, end), severity, message: `${message}; allowed: ${allowed}` };
}
