/** What may stand at a place, as a schema has it. */
import type { JsonSchema } from '../../../config/docs/json-schema.js';
import { anyItem, type Place } from './place.js';

export interface Proposal {
  readonly label: string;
  readonly kind: 'key' | 'value';
  /** What it is for, in words. */
  readonly about: string;
  readonly isRequired: boolean;
  /** Of a key: what its value is, so that the text behind it can be begun. */
  readonly holds: 'value' | 'map' | 'list' | 'maps';
}

/** Keys that the map has not, and values of closed lists. */
export function proposalsAt(schema: JsonSchema, { path, isValue, siblings }: Place): readonly Proposal[] {
  const found = path.reduce<readonly JsonSchema[]>((at, step) => at.flatMap((one) => childrenOf(one, step)), [schema]);
  const here = found.flatMap(alternativesOf);
  const keys = isValue ? [] : here.flatMap(keysOf).filter(({ label }) => !siblings.has(label));
  const proposals = [...keys, ...here.flatMap(valuesOf)];
  return proposals.filter(
    ({ label, kind }, index) => proposals.findIndex((one) => one.label === label && one.kind === kind) === index,
  );
}

function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf === undefined ? [schema] : [schema, ...schema.anyOf.flatMap(alternativesOf)];
}

function childrenOf(schema: JsonSchema, step: string): readonly JsonSchema[] {
  return alternativesOf(schema).flatMap(({ items, properties, additionalProperties }) => {
    if (step === anyItem) return items === undefined ? [] : [items];
    if (properties !== undefined && Object.hasOwn(properties, step)) return [properties[step] ?? {}];
    return typeof additionalProperties === 'object' ? [additionalProperties] : [];
  });
}

function keysOf({ properties = {}, required = [] }: JsonSchema): readonly Proposal[] {
  return Object.entries(properties).map(([label, value]) => ({
    label,
    kind: 'key',
    about: wordsOf(value),
    isRequired: required.includes(label),
    holds: heldBy(value),
  }));
}

function valuesOf(schema: JsonSchema): readonly Proposal[] {
  const { type, default: standard } = schema;
  const listed: readonly unknown[] = Array.isArray(schema['enum']) ? schema['enum'] : [schema['const']];
  const known = [...(type === 'boolean' ? [true, false] : []), ...listed].filter((value) => value !== undefined);
  return known.map((value) => ({
    label: typeof value === 'string' ? value : JSON.stringify(value),
    kind: 'value',
    about: value === standard ? 'The default.' : '',
    isRequired: false,
    holds: 'value',
  }));
}

function heldBy(value: JsonSchema): Proposal['holds'] {
  const kinds = alternativesOf(value).filter(({ anyOf }) => anyOf === undefined);
  if (kinds.some(({ type }) => type !== 'object' && type !== 'array' && type !== 'null')) return 'value';
  const list = kinds.find(({ type }) => type === 'array');
  if (list === undefined) return 'map';
  return list.items !== undefined && heldBy(list.items) === 'map' ? 'maps' : 'list';
}

function wordsOf(value: JsonSchema): string {
  const { description = '', default: standard } = value;
  const allowed = alternativesOf(value).flatMap((one) => (one.allowed === undefined ? [] : [one.allowed]));
  const words = [
    description,
    ...(allowed.length === 0 ? [] : [`Allowed: ${[...new Set(allowed)].join(', or ')}.`]),
    ...(standard === undefined || standard === null ? [] : [`Default: ${JSON.stringify(standard)}.`]),
  ];
  return words.filter((text) => text !== '').join(' ');
}
