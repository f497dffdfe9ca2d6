/** How the editors look: in the colours of the page, light or dark. */
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--card)', fontSize: '0.9rem' },
  '&.cm-focused': { outline: '3px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': {
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
    lineHeight: '1.5',
  },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--page)', color: 'var(--quiet)', borderRight: '1px solid var(--rule)' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent) 7%, transparent)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'color-mix(in srgb, var(--accent) 25%, transparent)' },
  '.cm-tooltip': {
    maxWidth: 'min(34rem, 92vw)',
    color: 'var(--text)',
    backgroundColor: 'var(--card)',
    border: '1px solid var(--edge)',
    borderRadius: '6px',
  },
  '.cm-tooltip .cm-completionInfo': { padding: '0.4rem 0.6rem', maxWidth: 'min(26rem, 80vw)' },
  '.cm-tooltip .cm-completionInfo p': { margin: '0' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    color: 'var(--accent-text)',
    backgroundColor: 'var(--accent)',
  },
  '.cm-diagnostic': { overflowWrap: 'anywhere' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '.cm-completionDetail': { fontStyle: 'normal', opacity: '0.85' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--line-0)' },
  { tag: tags.string, color: 'var(--line-4)' },
  { tag: [tags.lineComment, tags.comment], color: 'var(--quiet)' },
  { tag: [tags.keyword, tags.meta, tags.labelName, tags.typeName], color: 'var(--line-2)' },
]);

export const look = [theme, syntaxHighlighting(colours)];
