/** Proposals of a schema, as the editor takes them. */
import type { Completion, CompletionContext, CompletionResult, CompletionSource } from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import type { JsonSchema } from '../../../config/docs/json-schema.js';
import { placeAt, type Place } from './place.js';
import { proposalsAt, type Proposal } from './proposals.js';

/** What is required stands first. */
const requiredBoost = 10;

export function completeBy(schema: JsonSchema): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const place = placeAt(context.state.doc.toString(), context.pos);
    if (place === null || (place.from === context.pos && !place.isValue && !context.explicit)) return null;
    const options = proposalsAt(schema, place).map((proposal) => optionOf(proposal, place));
    return options.length === 0 ? null : { from: place.from, options, validFor: /^[\w*.-]*$/ };
  };
}

function optionOf({ label, kind, about, isRequired, holds }: Proposal, place: Place): Completion {
  return {
    label,
    type: kind === 'key' ? 'property' : 'enum',
    ...(isRequired ? { detail: 'required', boost: requiredBoost } : {}),
    ...(about === '' ? {} : { info: () => described(about) }),
    ...(kind === 'key' ? { apply: writeKey(label, holds, place.indent) } : {}),
  };
}

function described(about: string): Node {
  const node = document.createElement('p');
  node.textContent = about;
  return node;
}

/** Writes the key with what its value begins with, and leaves the cursor where the value comes. */
function writeKey(label: string, holds: Proposal['holds'], indent: number | null) {
  return (view: EditorView, _completion: Completion, from: number, to: number): void => {
    const below = `\n${' '.repeat((indent ?? 0) + 2)}`;
    const [before, after] =
      indent === null || holds === 'value'
        ? [`${label}: `, '']
        : holds === 'list'
          ? [`${label}: [`, ']']
          : [`${label}:${below}${holds === 'maps' ? '- ' : ''}`, ''];
    view.dispatch({
      changes: { from, to, insert: `${before}${after}` },
      selection: { anchor: from + before.length },
      userEvent: 'input.complete',
    });
  };
}
