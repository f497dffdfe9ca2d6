/** What two configs say differently besides who may do what. */
import { always, type KeyChanges } from '../../config/schema/key-changes.js';
import { keyChanges, sectionNames } from '../../config/sections/index.js';
import { movedScopes } from '../../config/moved-scopes.js';
import { targetKeys } from '../../config/sections/egress/targets.js';
import { tokenKeys } from '../../config/sections/egress/tokens.js';
import { issuerKeys } from '../../config/sections/issuers/issuers.js';
import { routeKeys } from '../../config/sections/routes/routes.js';
import type { CompiledConfig } from '../../config/types.js';
import type { Route } from '../../decision/route/policy.js';

/** One setting that is another now. */
export interface SettingChange {
  /** As the config names it. */
  readonly setting: string;
  readonly from: string;
  readonly to: string;
  /** Whether more is let through, or less is guarded, than before. */
  readonly widens: boolean;
}

/** What the keys of a route look at, or what is compared by who gets through. */
const knownFields: Readonly<Record<keyof Route, true>> = {
  name: true,
  methods: true,
  paths: true,
  isGrpc: true,
  access: true,
  mode: true,
  acceptsService: true,
  session: true,
  approvals: true,
  issuers: true,
  allowsWebSocket: true,
  origins: true,
  allowsBody: true,
  encodedSlashes: true,
  pathParameters: true,
  forwardsAuthorization: true,
  maxBodyBytes: true,
  responseTimeoutMs: true,
  reservation: true,
  clientCertificates: true,
  unreservedBecause: true,
  limits: true,
};

/** What is different for those whom both routes let through. A setting that this does not know counts as wider. */
export function routeChanges(from: Route, to: Route): readonly SettingChange[] {
  const unknownFields = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter(
    (name) => !Object.hasOwn(knownFields, name),
  );
  const unknown: KeyChanges<Route> = Object.fromEntries(
    unknownFields.map((name) => [
      name,
      { of: (route: Route) => new Map<string, unknown>(Object.entries(route)).get(name) ?? null, widens: always },
    ]),
  );
  return [...changesOf('', unknown, from, to), ...changesOf('', routeKeys, from, to)];
}

/** What is different for every request. */
export function settingsChanges(from: CompiledConfig, to: CompiledConfig): readonly SettingChange[] {
  const names = new Set([...from.issuers, ...to.issuers].map(({ rules }) => rules.name));
  return [
    ...sectionNames.flatMap((name) => changesOf(name, keyChanges[name], from, to)),
    ...[...names].flatMap((name) => issuerChanges(name, from, to)),
    ...namedChanges('egress.tokens', tokenKeys, from.egress?.tokens, to.egress?.tokens),
    ...namedChanges('egress.targets', targetKeys, from.egress?.targets, to.egress?.targets),
    // A retry of an earlier write would run it again.
    ...movedScopes(from, to).map((who) => ({
      setting: `idempotency keys of ${who}`,
      from: 'known',
      to: 'none',
      widens: true,
    })),
  ];
}

function issuerChanges(name: string, from: CompiledConfig, to: CompiledConfig): readonly SettingChange[] {
  const [before, after] = [from, to].map(({ issuers }) => issuers.find(({ rules }) => rules.name === name));
  const setting = `issuers.${name}`;
  if (before === undefined) return [{ setting, from: 'none', to: after?.rules.issuer ?? 'none', widens: true }];
  if (after === undefined) return [{ setting, from: before.rules.issuer, to: 'none', widens: false }];
  return changesOf(setting, issuerKeys, before, after);
}

/** Of parts of the calling side, which have names. One that is new gets somebody somewhere. */
function namedChanges<T extends { readonly name: string }>(
  section: string,
  keys: KeyChanges<T>,
  from: readonly T[] = [],
  to: readonly T[] = [],
): readonly SettingChange[] {
  const names = new Set([...from, ...to].map(({ name }) => name));
  return [...names].flatMap((name) => {
    const [before, after] = [from, to].map((all) => all.find((each) => each.name === name));
    const setting = `${section}.${name}`;
    if (before !== undefined && after !== undefined) return changesOf(setting, keys, before, after);
    const words = (part: T | undefined): string => (part === undefined ? 'none' : 'there');
    return [{ setting, from: words(before), to: words(after), widens: before === undefined }];
  });
}

/** @param section what the names of its keys begin with. */
function changesOf<T>(section: string, keys: KeyChanges<T>, from: T, to: T): readonly SettingChange[] {
  return Object.entries(keys).flatMap(([key, change]) => {
    const { widens, shownAs = key } = change;
    if (widens === undefined) return [];
    const valueOf = (config: T): unknown => (change.shown === undefined ? change.of?.(config) : change.shown(config));
    const [before, after] = [plain(valueOf(from)), plain(valueOf(to))];
    if (before === undefined || after === undefined) return [];
    const isSame = exact(before) === exact(after);
    if (isSame && change.hidden?.(from) === change.hidden?.(to)) return [];
    const setting = [section, shownAs].filter((part) => part !== '').join('.');
    // Of two lists that would read alike, such as `a b` in one item and in two, the items are told apart.
    const text = !isSame && shown(before) === shown(after) ? exact : shown;
    const now = isSame ? `${text(after)}, with another query` : text(after);
    return [{ setting, from: text(before), to: now, widens: widens(before, after) }];
  });
}

/** Sets as lists, so that they can be compared and shown. */
function plain(value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(String).toSorted().join(' ');
  if (value === null || value === undefined) return 'none';
  return typeof value === 'string' ? value : json(value);
}

/** A text that no other value has, but for the order of a list. */
function exact(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(json).toSorted().join(', ')}]` : json(value);
}

function json(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) => plain(inner));
}
