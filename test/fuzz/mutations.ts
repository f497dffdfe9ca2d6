/** Heads from heads: small changes to those that led somewhere new. */
import { once, pick, type Draw } from './draw.js';
import { pathPieces } from '../support/attacks/targets.js';
import { proofFor } from './bound-heads.js';
import { authorizationOf, respelled, someField } from './heads.js';
import { signAnew } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';

type Change = (draw: Draw, head: Head, other: Head) => Head;

/** Text with one thing changed: a byte, a piece, a cut, a repetition. One character is one byte. */
export function changedText(draw: Draw, text: string): string {
  const at = draw.below(text.length + 1);
  const to = Math.min(text.length, at + 1 + draw.below(4));
  const [before, middle, after] = [text.slice(0, at), text.slice(at, to), text.slice(to)];
  switch (draw.below(7)) {
    case 0:
      return before + after;
    case 1:
      return before + middle + middle + after;
    case 2:
      return before + String.fromCharCode(draw.below(256)) + after;
    case 3:
      return before + pick(draw, pathPieces) + middle + after;
    case 4:
      return before + flippedCase(middle) + after;
    case 5:
      return before + escaped(middle) + after;
    default:
      return before + String.fromCharCode((middle.charCodeAt(0) || 0) ^ (1 << draw.below(8))) + middle.slice(1) + after;
  }
}

const changes: readonly Change[] = [
  (draw, head) => ({ ...head, target: changedText(draw, head.target) }),
  (draw, head) => ({ ...head, target: changedText(draw, head.target) }),
  (draw, head, other) => {
    const [at, from] = [draw.below(head.target.length + 1), draw.below(other.target.length + 1)];
    return { ...head, target: head.target.slice(0, at) + other.target.slice(from) };
  },
  (draw, head) => ({
    ...head,
    method: once(draw, 3) ? changedText(draw, head.method) : pick(draw, ['GET', 'POST', 'HEAD', 'DELETE']),
  }),
  (draw, head) => ({ ...head, fields: inserted(draw, head.fields, someField(draw)) }),
  (draw, head, other) => ({ ...head, fields: inserted(draw, head.fields, pick(draw, [['A', 'b'], ...other.fields])) }),
  (draw, head) =>
    withField(draw, head, ([name, value]) => [once(draw, 2) ? respelled(draw, name) : changedText(draw, name), value]),
  (draw, head) => withField(draw, head, ([name, value]) => [name, changedText(draw, value)]),
  (draw, head) => withField(draw, head, (field) => field, 2),
  (draw, head) => withField(draw, head, (field) => field, 0),
  (draw, head) => withToken(draw, head, (token) => changedText(draw, token)),
  (draw, head) => withToken(draw, head, (token) => swapped(draw, token)),
  (draw, head) => {
    const token = tokenOf(head);
    const fields = head.fields.filter(([name]) => name !== 'DPoP');
    return token === null ? head : { ...head, fields: [...fields, ['DPoP', proofFor(draw, head, token)]] };
  },
  (draw, head, other) => {
    const token = tokenOf(other);
    return token === null
      ? head
      : {
          ...head,
          fields: [...head.fields.filter(([name]) => name !== 'Authorization'), authorizationOf(draw, token)],
        };
  },
];

/** A change of a head; tokens are signed anew in one of some `resignOdds` cases only, because that is slow. */
export function changedHead(draw: Draw, head: Head, other: Head, resignOdds: number): Head {
  let next = head;
  for (let count = pick(draw, [1, 1, 1, 2, 3]); count > 0; count--) next = pick(draw, changes)(draw, next, other);
  if (once(draw, resignOdds)) next = withToken(draw, next, (token) => signAnew(draw, token, changedText));
  return next;
}

/** What precedes the first space is the scheme. */
function tokenOf(head: Head): string | null {
  const value = head.fields.find(([name]) => name === 'Authorization')?.[1] ?? '';
  return value.includes(' ') ? value.slice(value.indexOf(' ') + 1) : null;
}

function withToken(_draw: Draw, head: Head, change: (token: string) => string): Head {
  const token = tokenOf(head);
  if (token === null) return head;
  const fields = head.fields.map(([name, value]): Field =>
    name === 'Authorization' ? [name, value.replace(token, () => change(token))] : [name, value],
  );
  return { ...head, fields };
}

/** Another spelling of the same bytes, or parts in another order. */
function swapped(draw: Draw, token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  return pick(draw, [
    `${header}.${payload}.${signature}=`,
    `${header}.${payload}.${signature}`.replaceAll('-', '+').replaceAll('_', '/'),
    `${payload}.${header}.${signature}`,
    `${header}.${payload}.`,
    `${header}.${payload}`,
    `${header}..${signature}`,
    `${header}.${payload}.${signature}.${signature}`,
    `.${header}.${payload}.${signature}`,
    `${header}.${payload}.${signature.slice(0, -1)}${pick(draw, ['A', 'B', 'Q', 'g', 'w', 'x'])}`,
    `${header}.${payload}.${signature}A`,
  ]);
}

function inserted(draw: Draw, fields: readonly Field[], field: Field): Field[] {
  const at = draw.below(fields.length + 1);
  return [...fields.slice(0, at), field, ...fields.slice(at)];
}

/** Changes one field; `times` says how often it then stands there. */
function withField(draw: Draw, head: Head, change: (field: Field) => Field, times = 1): Head {
  const at = draw.below(Math.max(1, head.fields.length));
  return {
    ...head,
    fields: head.fields.flatMap((field, index) =>
      index === at ? Array.from({ length: times }, () => change(field)) : [field],
    ),
  };
}

function flippedCase(text: string): string {
  return Array.from(text)
    .map((character) => (character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase()))
    .join('');
}

function escaped(text: string): string {
  return Array.from(text)
    .map((character) => `%${(character.charCodeAt(0) & 0xff).toString(16).padStart(2, '0')}`)
    .join('');
}
