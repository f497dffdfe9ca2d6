/** What of an issuer follows from its profile: which settings it has, and their defaults. */
import { z } from 'zod';
import type { Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { readUrl } from '../../schema/addresses.js';
import type { IssuerFile } from './issuers.js';
import {
  claimValue,
  claimValueAllowed,
  fetchedUrl,
  filePath,
  flag,
  list,
  map,
  text,
  word,
} from '../../schema/scalars.js';
import type { IssuerRules } from '../../../decision/route/policy.js';
import {
  algorithmNames,
  profileDefaults,
  profileNames,
  type ClaimPath,
  type ClaimRules,
  type Profile,
} from '../../../decision/token/profiles.js';

/** Names from the payload inwards, parted by dots; `\.` is a dot within a name. */
const claimPathForm = /^(?:[^.\\\x00-\x1f\x7f]|\\[.\\])+(?:\.(?:[^.\\\x00-\x1f\x7f]|\\[.\\])+){0,15}$/;

const claimPathAllowed =
  'names of claims from the payload inwards, such as realm_access.roles, 16 at most; `\\.` is a dot in a name';

const claimPath = text(claimPathForm, claimPathAllowed, 512);

const requiredAllowed = `${claimValueAllowed}, or a list of them`;

const requiredValue = z
  .union([claimValue(requiredAllowed), list(claimValue(requiredAllowed), 1, 'values')], requiredAllowed)
  .meta({
    allowed: requiredAllowed,
  });

const claimsSchema = map({
  subject: claimPath
    .optional()
    .describe('Claim that names the caller, such as `client_id` or `azp`. Only with `profile: oauth`. Default: `sub`.'),
  permissions: claimPath
    .optional()
    .describe(
      'Claim with the permissions: a text with blanks between them, or a list of texts; where a token has none, its caller ' +
        'has none. Default: `scope` with `profile: oauth`, else nothing.',
    ),
  require: z
    .record(claimPath, requiredValue, 'a map of claims')
    .prefault({})
    .describe('Further claims, by their paths, and the value that each has to have exactly, or a list of such values.'),
});

const headerTypeForm = /^(?:application\/)?[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$/;

const originAllowed = 'an origin such as https://keys.example.com, without path';

const keyOrigin = z
  .string(originAllowed)
  .max(300, originAllowed)
  .refine((value) => /^https?:\/\/[^/?#\\@\s]+$/.test(value) && readUrl(value) !== null, originAllowed)
  .meta({ allowed: originAllowed });

/** Lower-case, as the SPIFFE ID specification has it (§2.1). */
const trustDomainForm = /^[a-z0-9._-]+$/;

/** The keys of an issuer that profiles differ in. */
export const profileKeys = {
  profile: word(...profileNames)
    .prefault('core')
    .describe(
      'What its tokens are held to: the contract of the `core`, RFC 9068 and what large providers issue (`oauth`), tokens of ' +
        'service accounts (`kubernetes`), or JWT-SVIDs (`spiffe`).',
    ),
  algorithms: list(word(...algorithmNames), 1, 'algorithms')
    .optional()
    .describe(
      'Signature algorithms that count; which of them a key verifies is fixed by the key. Default: `[RS256]` with ' +
        '`profile: core`, which takes no other; `[RS256, ES256]` with `oauth` and `kubernetes`; `[RS256, ES256, ES384]` with `spiffe`.',
    ),
  token_typ: list(text(headerTypeForm, 'a media type such as at+jwt, or absent', 128), 1, 'types')
    .optional()
    .describe(
      'What `typ` of a token’s header may say; `absent` takes tokens without. Not with `profile: core`. Default: `[at+jwt]` with ' +
        '`oauth`, `[JWT, absent]` with `kubernetes`, `[JWT, JOSE, absent]` with `spiffe`.',
    ),
  discovery: flag()
    .optional()
    .describe(
      'Whether the issuer’s metadata names the place of its keys. Only with `profile: oauth` and `kubernetes`. Default: true where neither ' +
        '`jwks_url` nor `jwks_file` stands.',
    ),
  discovery_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where the metadata is. Default: below `issuer`, as OpenID Connect Discovery and then RFC 8414 have it; with `profile: kubernetes` ' +
        '`https://kubernetes.default.svc/.well-known/openid-configuration`.',
    ),
  jwks_origins: list(keyOrigin, 0, 'origins')
    .prefault([])
    .describe('Further origins where the metadata’s `jwks_uri` may be, besides those of `issuer` and of the metadata.'),
  token_file: filePath()
    .nullable()
    .optional()
    .describe(
      'File with a bearer token that is sent when keys are fetched, over https only. Read again for each fetch. Only with ' +
        '`profile: kubernetes`. Default: that of the pod where `discovery_url` is left out, else none.',
    ),
  trust_domain: text(trustDomainForm, '1 to 255 of a-z, 0-9, `.`, `_` and `-`', 255)
    .optional()
    .describe('Trust domain of the callers, such as `shop.example`. Required with `profile: spiffe`, and only there.'),
  bundle_url: fetchedUrl()
    .nullable()
    .prefault(null)
    .describe(
      'Where the trust domain’s bundle is (`https_web`). Only with `profile: spiffe`, which needs it or `bundle_file`.',
    ),
  bundle_file: filePath()
    .nullable()
    .prefault(null)
    .describe('File with the trust domain’s bundle, instead of `bundle_url`. Read again when it changes.'),
  claims: claimsSchema
    .prefault({})
    .describe('Where tokens say who calls and what it may do. Not with `profile: core`.'),
} as const;

/** The part of an issuer's rules that says which tokens it takes, as its profile has it. */
export type ProfileRules = Pick<
  IssuerRules,
  | 'profile'
  | 'issuer'
  | 'expectedIssuer'
  | 'audiences'
  | 'sources'
  | 'tokenTypes'
  | 'algorithms'
  | 'headerTypes'
  | 'claims'
  | 'trustDomain'
  | 'keyIds'
>;

/** Fills in what the profile takes where the file says nothing. */
export function compileProfile(file: IssuerFile): ProfileRules {
  const standard = profileDefaults[file.profile];
  const trustDomain = file.trust_domain ?? null;
  return {
    profile: file.profile,
    issuer: file.issuer ?? `spiffe://${trustDomain ?? ''}`,
    expectedIssuer: file.issuer ?? null,
    audiences: new Set(file.audience),
    sources: new Set(file.source),
    tokenTypes: new Set(file.token_type),
    algorithms: new Set(file.algorithms ?? standard.algorithms),
    headerTypes: new Set((file.token_typ ?? standard.tokenTypes).map(headerTypeOf)),
    claims: compileClaims(file.claims, file.profile),
    trustDomain,
    keyIds: { accept: file.key_ids.accept ?? standard.keyIds, reject: file.key_ids.reject },
  };
}

/** A media type without regard to case, and without the prefix that may be left out (RFC 7515 §4.1.9). */
function headerTypeOf(written: string): string {
  return written.toLowerCase().replace(/^application\//, '');
}

function compileClaims({ subject, permissions, require }: IssuerFile['claims'], profile: Profile): ClaimRules {
  const granting = permissions ?? profileDefaults[profile].permissions;
  return {
    subject: pathOf(subject ?? 'sub'),
    permissions: granting === null ? null : pathOf(granting),
    require: Object.entries(require).map(([path, value]) => ({
      path: pathOf(path),
      values: Array.isArray(value) ? value : [value],
    })),
  };
}

function pathOf(written: string): ClaimPath {
  return [...written.matchAll(/(?:[^.\\]|\\[.\\])+/g)].map(([name]) => name.replace(/\\([.\\])/g, '$1'));
}

type ProfileKey = keyof typeof profileKeys | 'introspection' | 'source' | 'token_type' | 'jwks_url' | 'jwks_file';

/** Keys that not all profiles have, and those that do. */
const profilesOfKey: readonly (readonly [ProfileKey, readonly Profile[]])[] = [
  ['source', ['core']],
  ['token_type', ['core']],
  ['token_typ', ['oauth', 'kubernetes', 'spiffe']],
  ['discovery', ['oauth', 'kubernetes']],
  ['discovery_url', ['oauth', 'kubernetes']],
  ['jwks_origins', ['oauth', 'kubernetes']],
  ['jwks_url', ['core', 'oauth', 'kubernetes']],
  ['jwks_file', ['core', 'oauth', 'kubernetes']],
  ['token_file', ['kubernetes']],
  ['trust_domain', ['spiffe']],
  ['bundle_url', ['spiffe']],
  ['bundle_file', ['spiffe']],
  ['claims', ['oauth', 'kubernetes', 'spiffe']],
  ['introspection', ['oauth']],
];

/** What a key that a profile lacks could have been meant as. */
const insteadOf: Partial<Record<ProfileKey, string>> = {
  source: 'claims.require, where a claim has to have one value',
  token_type: 'claims.require, where a claim has to have one value; token_typ for the header',
  jwks_url: 'bundle_url',
  jwks_file: 'bundle_file',
};

/** Checks that an issuer has the keys of its profile and no other. `isPresent` is of a key of the issuer. */
export function checkProfile(
  { path }: Entry<IssuerFile>,
  file: IssuerFile,
  isPresent: (key: string) => boolean,
  report: Report,
): void {
  const name = nameOf(path);
  for (const [key, profiles] of profilesOfKey) {
    if (!isPresent(key) || profiles.includes(file.profile)) continue;
    report.keyError(
      [...path, key],
      `${name}.${key} has no use with profile: ${file.profile}`,
      insteadOf[key] ?? `profile: ${profiles.join(' or ')}`,
    );
  }
  if (file.profile === 'core') checkCoreAlgorithms(path, file, report);
  else checkAmbiguousKeys(path, file, report);
  if (file.profile !== 'oauth' && file.claims.subject !== undefined && file.profile !== 'core') {
    report.error(
      [...path, 'claims', 'subject'],
      `${name}.claims.subject has no use with profile: ${file.profile}, whose standard says who the caller is`,
      'profile: oauth',
    );
  }
  if (file.profile === 'spiffe') checkBundle(path, file, report);
  else checkDiscovery(path, file, report);
}

type Path = Entry<IssuerFile>['path'];

function checkCoreAlgorithms(path: Path, { algorithms = [] }: IssuerFile, report: Report): void {
  algorithms.forEach((algorithm, index) => {
    if (algorithm === 'RS256') return;
    const at = [...path, 'algorithms', index];
    report.error(at, `${nameOf(at)} is ${report.show(at)}, with which no Core signs`, 'RS256 with profile: core');
  });
}

/** RSA keys fit six algorithms: where several are allowed, only `alg` of the key tells which one is meant. */
function checkAmbiguousKeys(path: Path, { algorithms = [] }: IssuerFile, report: Report): void {
  const forRsa = [...new Set(algorithms)].filter((algorithm) => /^[RP]S/.test(algorithm));
  if (forRsa.length < 2) return;
  report.note(
    [...path, 'algorithms'],
    `${nameOf(path)}.algorithms allows ${forRsa.join(' and ')}: RSA keys that do not say their alg verify nothing`,
  );
}

function checkBundle(path: Path, file: IssuerFile, report: Report): void {
  const name = nameOf(path);
  if (file.bundle_file === null && file.bundle_url === null) {
    report.error(path, `${name} does not say where its keys are`, 'bundle_url or bundle_file');
  }
}

function checkDiscovery(path: Path, file: IssuerFile, report: Report): void {
  if (file.profile === 'core') return;
  const name = nameOf(path);
  const written = file.jwks_url !== null ? 'jwks_url' : file.jwks_file !== null ? 'jwks_file' : null;
  if (written === null) {
    if (file.discovery === false) {
      report.error(
        [...path, 'discovery'],
        `${name} does not say where its keys are`,
        'discovery: true, jwks_url or jwks_file',
      );
    }
    return;
  }
  const meant = file.discovery === true ? 'discovery' : file.discovery_url !== null ? 'discovery_url' : null;
  if (meant !== null) {
    report.keyError([...path, meant], `${name}.${meant} stands beside ${name}.${written}`, 'one of them');
  } else if (file.jwks_origins.length > 0) {
    report.keyError([...path, 'jwks_origins'], `${name}.jwks_origins has no use with ${name}.${written}`, 'discovery');
  }
}
