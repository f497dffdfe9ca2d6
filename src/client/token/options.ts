import type { ProofKey } from './proof-key.js';
import { readBoundTo } from '../../core-api/bound-to.js';
import type { Confirmation } from '../../decision/binding/confirmation.js';
import { normalizeApiDomain, readCoreUrl } from '../../core-api/core-url.js';
import { readCaBundle } from '../../lib/pem.js';
import type { IssuanceRecord } from '../../core-api/issuance-log.js';
import { cdiVersionProblem, maxValidityS, readMintClaims, type MintClaims } from '../../core-api/mint-request.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** Where the Core is, and how to call it. */
interface CoreOptions {
  /** http or https, perhaps with a base path. */
  readonly url: string;
  /**
   * The Core's API key, or a function that reads it for each call of the Core, so that it can be replaced while the
   * program runs.
   */
  readonly apiKey?: string | (() => string | Promise<string>);
  /** Authorities in PEM to trust instead of the system's. */
  readonly ca?: string;
  /** The driver interface version to ask for, 2.21 or later. Without it the Core answers with its newest. */
  readonly cdiVersion?: string;
  /** For a whole call, and for what `apiKey` and `onIssued` take each, milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  /** Lets the key travel in the clear to another machine. Default false. */
  readonly allowHttp?: boolean;
  /** Lets the Core have a public address. Default false. */
  readonly allowPublicCore?: boolean;
}

/** What tokens a source gives out. */
export interface TokenSourceOptions {
  readonly core: CoreOptions;
  /** The API domain, which becomes `iss`; normalised as the backend SDK does. */
  readonly issuer: string;
  /** All of them and no other: the schema is fixed. */
  readonly claims: MintClaims;
  /** How long a token lives: whole seconds, 10 to 7,200. Default 300. */
  readonly validitySeconds?: number;
  /**
   * Gives each call of `getToken` a token of its own, with a random `jti`. Default false: one token for all calls,
   * renewed ahead of its end.
   */
  readonly singleUse?: boolean;
  /**
   * Binds the tokens to what this program keeps, so that a copy is of no use: a key, whose `headers` go with each
   * request in the place of `Authorization: Bearer`, or the certificate in PEM that it shows to the services.
   */
  readonly boundTo?: ProofKey | { readonly certificate: string };
  /**
   * Called with each issued token's record, without the token, before it is given out; where it fails, or takes
   * longer than `core.timeoutMs`, the token is not.
   */
  readonly onIssued?: (record: IssuanceRecord) => void | Promise<void>;
}

/** Options that hold. */
export interface TokenSettings {
  readonly baseUrl: string;
  readonly ca: readonly string[] | null;
  readonly headers: readonly { readonly name: string; readonly value: string }[];
  readonly timeoutMs: number;
  readonly issuer: string;
  readonly claims: MintClaims;
  readonly validityS: number;
  readonly confirmation: Confirmation | null;
}

/** Shorter ones would be over before they are renewed. */
const minValidityS = 10;
const defaultValidityS = 300;
const defaultTimeoutMs = 10_000;
const maxTimeoutMs = 300_000;

/** Checks the options, in words refusing what is wrong; nothing secret is in them. */
export function readTokenOptions({
  core,
  issuer,
  claims,
  validitySeconds = defaultValidityS,
  boundTo,
}: TokenSourceOptions): Result<TokenSettings, string> {
  const baseUrl = readCoreUrl(core.url);
  if (!baseUrl.ok) return refuse(`core.url ${baseUrl.error}`);
  const ca = core.ca === undefined ? accept(null) : readCaBundle(core.ca);
  if (!ca.ok) return refuse(`core.ca ${ca.error}`);
  const versionProblem = core.cdiVersion === undefined ? null : cdiVersionProblem(core.cdiVersion);
  if (versionProblem !== null) return refuse(`core.cdiVersion ${versionProblem}`);
  const timeoutMs = core.timeoutMs ?? defaultTimeoutMs;
  if (!isWhole(timeoutMs, 1, maxTimeoutMs)) {
    return refuse(`core.timeoutMs is no whole number from 1 to ${maxTimeoutMs}`);
  }
  if (typeof core.apiKey === 'string' && !isApiKey(core.apiKey)) return refuse(`core.apiKey ${apiKeyRule}`);
  const domain = normalizeApiDomain(issuer);
  if (!domain.ok) return refuse(`issuer is not ${domain.error}`);
  const read = readMintClaims({ ...claims });
  if (!read.ok) return refuse(`claims: ${read.error}`);
  if (!isWhole(validitySeconds, minValidityS, maxValidityS)) {
    return refuse(`validitySeconds is no whole number from ${minValidityS} to ${maxValidityS}`);
  }
  const confirmation = confirmationOf(boundTo);
  if (!confirmation.ok) return refuse(`boundTo.certificate ${confirmation.error}`);
  const headers = core.cdiVersion === undefined ? [] : [{ name: 'cdi-version', value: core.cdiVersion }];
  return accept({
    baseUrl: baseUrl.value,
    ca: ca.value,
    headers,
    timeoutMs,
    issuer: domain.value,
    claims: read.value,
    validityS: validitySeconds,
    confirmation: confirmation.value,
  });
}

function confirmationOf(boundTo: TokenSourceOptions['boundTo']): Result<Confirmation | null, string> {
  if (boundTo === undefined) return accept(null);
  if ('thumbprint' in boundTo) return accept({ certificate: null, key: boundTo.thumbprint });
  const read = readBoundTo(boundTo.certificate);
  return !read.ok || read.value.certificate === null ? refuse('is no certificate in PEM') : read;
}

/** What an API key has to be to stand in a header. */
export const apiKeyRule = 'is no text of 1 to 1,024 visible ASCII characters';

export function isApiKey(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,1024}$/.test(value);
}

function isWhole(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
