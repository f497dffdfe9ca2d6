import type { IntrospectionSettings } from '../../config/types.js';
import type { IssuerRules } from '../../decision/route/policy.js';
import { keepClaims } from '../../decision/token/kept-claims.js';
import { bearerDigest } from '../../decision/token/credential.js';
import { isNumericDate } from '../../decision/token/service-token.js';
import { coalesce } from '../../lib/promises.js';
import { clientNetworks } from '../../lib/ip-ranges.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { JsonObject } from '../../lib/strict-json.js';
import type { Introspection, IntrospectionResponse, KeyAsker, KeySource } from '../../ports/auth.js';
import type { Metrics } from '../../ports/observability.js';
import type { Clock, Files, FileWatch, Log } from '../../ports/system.js';
import { createResponseCache, createCacheBudget, type CacheBudget } from './response-cache.js';
import {
  connectToIssuer,
  failed,
  type IssuerConnections,
  type IssuerQuestion,
  type IssuerRequestFailure,
  type QuestionGroup,
} from './ask-issuer.js';
import { createBudget, type Refund } from './budget.js';
import { createCircuits } from './circuits.js';
import {
  credentialFiles,
  maxFileBytes,
  readClientCredentials,
  secretFileOf,
  type ClientCredentials,
} from './client-credentials.js';
import { createNetworkShares, type Leave } from './network-shares.js';
import { readResponse } from './read-response.js';

interface IntrospectorDeps {
  readonly clock: Clock;
  readonly files: Files;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'introspection' | 'introspectionLookup'>;
  /** Keys of the issuer, for responses that are JWTs, and its metadata, which may say where it is asked. */
  readonly keys: Pick<KeySource, 'find' | 'state'>;
  /** Called with the path of a secret that was read anew. */
  readonly onSecretRead?: (path: string) => void;
  /** Called when a certificate is in use, the first or another one. */
  readonly onCertificate?: () => void;
  /** What it shares with other issuers; one of its own unless given. */
  readonly cacheBudget?: CacheBudget;
  /** Milliseconds between two looks at the files. */
  readonly watchIntervalMs?: number;
}

/** Asks an issuer about its opaque tokens until it is closed. */
export interface RunningIntrospection extends Introspection {
  /** Why the last question was not answered; `null` where it was, or nothing was asked yet. */
  readonly failure: () => IssuerRequestFailure | null;
  /** What the issuer is shown in TLS, as PEM text; `null` where that is nothing, or was not read yet. */
  readonly certificate: () => string | null;
  /** Settles when the files were read, whatever is in them. */
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Questions under way of each group: each keeps a request waiting. */
const maxInFlight: Readonly<Record<QuestionGroup, number>> = { known: 256, callers: 256, strangers: 128 };

const inactive: IntrospectionResponse = { kind: 'inactive' };
const unavailable: IntrospectionResponse = { kind: 'unavailable' };
const limited: IntrospectionResponse = { kind: 'limited' };

/**
 * Makes what asks one issuer. What it said is believed for a while and within bounds; a token is asked about once at a
 * time, however many bring it; an issuer that does not answer is left in peace; and tokens of which nothing good is
 * known make no more questions than the settings allow. A token that was active before is asked about whenever it has
 * to be: it has connections, places and a circuit of its own, as a filter before the issuer may hang up on odd tokens
 * of others, or never answer. So have strangers, and so have new tokens of those who have shown a good credential.
 * Among these, each network has a share and a circuit: having shown a good one says nothing of the next.
 */
export function createIntrospector(
  settings: IntrospectionSettings,
  issuer: IssuerRules,
  deps: IntrospectorDeps,
): RunningIntrospection {
  const { clock, files, log, metrics, keys } = deps;
  const { name } = issuer;
  const responses = createResponseCache(deps.cacheBudget ?? createCacheBudget());
  const budget = createBudget(settings.unknownPerSecond, settings.unknownPerAddress);
  const underWay = new Map<string, Promise<IntrospectionResponse>>();
  const responseRules = { form: settings.answer, clientId: settings.clientId, issuer, keys };
  const circuits = createCircuits();
  const places = createPlaces();
  let connections: IssuerConnections | null = null;
  let certificate: string | null = null;
  let failure: IssuerRequestFailure | null = null;
  /** What is wrong with the files, while nothing was read from them. */
  let fileProblem = 'its files were not read yet';
  let watches: readonly FileWatch[] = [];
  let closed = false;
  let started: Promise<void> | null = null;

  function start(): Promise<void> {
    started ??= open();
    return started;
  }

  function ask(
    token: string,
    given: string | null,
    asker: KeyAsker | null,
  ): IntrospectionResponse | Promise<IntrospectionResponse> {
    const digest = given ?? bearerDigest(token);
    const nowMs = clock.monotonic();
    const known = responses.get(digest);
    if (known !== null && nowMs < known.freshUntilMs) {
      metrics.introspectionLookup(name, 'remembered');
      return known.claims === null ? inactive : { kind: 'active', claims: known.claims };
    }
    const begun = underWay.get(digest);
    if (begun !== undefined) {
      metrics.introspectionLookup(name, 'joined');
      return begun;
    }
    if (closed) return unavailable;
    const isKnownGood = known !== null && known.claims !== null;
    const question: IssuerQuestion = { token, group: groupOf(isKnownGood, asker), address: asker?.address() ?? '' };
    const refund = isKnownGood ? noRefund : budget.take(asker, nowMs);
    const leave = refund && places.take(question);
    if (refund === null || leave === null) {
      refund?.();
      metrics.introspectionLookup(name, 'limited');
      return limited;
    }
    if (!circuits.tryAcquire(circuitOf(question), nowMs)) {
      refund();
      leave();
      metrics.introspectionLookup(name, 'open');
      return unavailable;
    }
    metrics.introspectionLookup(name, 'asked');
    const answer = askNow(question, digest, refund).finally(() => {
      underWay.delete(digest);
      leave();
    });
    underWay.set(digest, answer);
    return answer;
  }

  async function askNow(question: IssuerQuestion, digest: string, refund: Refund): Promise<IntrospectionResponse> {
    const beganAtMs = clock.monotonic();
    const wallMs = clock.now();
    let said: Result<Said, IssuerRequestFailure>;
    try {
      said = await put(question);
    } catch (error) {
      // What an issuer sends must not end the process, even where it meets a mistake of ours.
      said = refuse(failed(`unexpected ${error instanceof Error ? error.name : 'error'}`));
    }
    // A failure that a token alone may cause must not keep others from being asked about: a filter before the issuer
    // may answer an odd one in any way. Those that nobody has heard of are few, by the budget.
    const isOfToken = !said.ok && (said.error.isOfToken || (said.error.hasResponse && question.group !== 'known'));
    const circuit = circuitOf(question);
    if (isOfToken) circuits.leave(circuit);
    else circuits.release(circuit, said.ok, clock.monotonic());
    if (!said.ok) {
      fail(said.error);
      return unavailable;
    }
    recover();
    const { claims, bytes } = said.value;
    metrics.introspection(name, claims === null ? 'inactive' : 'active');
    if (claims !== null) refund();
    responses.set(digest, { claims, freshUntilMs: beganAtMs + freshForMs(claims, wallMs) }, bytes);
    return claims === null ? inactive : { kind: 'active', claims };
  }

  async function put(question: IssuerQuestion): Promise<Result<Said, IssuerRequestFailure>> {
    if (connections === null) await started;
    if (connections === null) return refuse(failed(fileProblem));
    const url = settings.url ?? discovered();
    if (url === null) return refuse(failed('the issuer’s metadata is not known, or has no introspection_endpoint'));
    const fromMs = clock.now();
    const response = await connections.ask(question, new URL(url), fromMs);
    if (!response.ok) return response;
    const read = await readResponse(response.value, responseRules, { fromMs, untilMs: clock.now() });
    return read.ok
      ? accept(read.value === null ? { claims: null, bytes: 0 } : keepClaims(read.value, issuer.claims))
      : refuse({ ...failed(read.error), hasResponse: true });
  }

  function discovered(): string | null {
    const { url = null, mtlsUrl = null } = keys.state().metadata?.introspection ?? {};
    return settings.auth.method === 'tls_client_auth' ? (mtlsUrl ?? url) : url;
  }

  /**
   * Milliseconds from the question on, within what is left of the token's life; `exp` is judged anew for each request.
   * A token without one, or whose time is over, is refused each time, and asked about no more often than others that
   * are. One that still counts by the skew is asked about each time: what was said is not kept beyond `exp` (RFC 7662
   * §4).
   */
  function freshForMs(claims: JsonObject | null, askedMs: number): number {
    if (claims === null) return settings.maxNegativeAgeMs;
    const { exp } = claims;
    if (!isNumericDate(exp)) return settings.maxNegativeAgeMs;
    const leftMs = exp * 1_000 - askedMs;
    if (leftMs > 0) return Math.min(settings.maxAgeMs, leftMs);
    return leftMs + issuer.clockSkewS * 1_000 > 0 ? 0 : settings.maxNegativeAgeMs;
  }

  function fail(next: IssuerRequestFailure): void {
    const { why, refusesClient } = next;
    metrics.introspection(name, refusesClient ? 'refused' : 'failed');
    const isKnown = failure?.why === why;
    failure = next;
    if (isKnown) return;
    const fields = { issuer: name, error: why };
    if (refusesClient) {
      log.error(
        'the issuer does not let this proxy ask about tokens: see client_id, client_auth and its files',
        fields,
      );
    } else log.warn('opaque tokens cannot be verified with their issuer', fields);
  }

  function recover(): void {
    if (failure === null) return;
    failure = null;
    log.info('opaque tokens are verified with their issuer again', { issuer: name });
  }

  async function open(): Promise<void> {
    const digests = new Map<string, string>();
    const read = await readFiles(digests);
    if (closed) return;
    if (read.ok) use(read.value);
    else {
      fileProblem = read.error;
      log.warn('the files for introspection cannot be used', { issuer: name, problem: read.error });
    }
    watches = credentialFiles(settings).map((path) =>
      files.watch(path, () => void takeUp(), {
        digest: digests.get(path) ?? null,
        maxBytes: maxFileBytes,
        ...(deps.watchIntervalMs === undefined ? {} : { intervalMs: deps.watchIntervalMs }),
      }),
    );
  }

  function readFiles(digests = new Map<string, string>()): Promise<Result<ClientCredentials, string>> {
    return readClientCredentials(settings, files, (path, text) => digests.set(path, files.digest(text)));
  }

  /** One at a time: what was read first must not be in use last. */
  const takeUp = coalesce(reread);

  async function reread(): Promise<void> {
    const read = await readFiles();
    if (closed) return;
    if (!read.ok) {
      if (connections === null) fileProblem = read.error;
      log.warn('the files for introspection were not taken up; the old ones stay in use', {
        issuer: name,
        problem: read.error,
      });
      return;
    }
    use(read.value);
    log.info('the files for introspection were taken up', { issuer: name });
    deps.onSecretRead?.(secretFileOf(settings.auth));
  }

  function use(credentials: ClientCredentials): void {
    if (connections === null) connections = connectToIssuer(credentials, settings);
    else connections.use(credentials);
    // What failed with the old ones may do with these.
    circuits.close();
    certificate = credentials.certificate?.cert ?? null;
    if (certificate !== null) deps.onCertificate?.();
  }

  return {
    ask,
    lastClaims: (token) => responses.get(bearerDigest(token))?.claims ?? null,
    state: () => ({
      issuer: name,
      up: failure === null,
      problem: failure?.why ?? null,
      ...responses.counts(),
      inFlight: underWay.size,
    }),
    failure: () => failure,
    certificate: () => certificate,
    start,
    close: async () => {
      closed = true;
      for (const watch of watches) watch.close();
      responses.close();
      await connections?.close();
    },
  };
}

/** What is kept of a response, and how many bytes that takes. */
interface Said {
  readonly claims: JsonObject | null;
  readonly bytes: number;
}

const noRefund: Refund = () => undefined;

function groupOf(isKnownGood: boolean, asker: KeyAsker | null): QuestionGroup {
  if (isKnownGood) return 'known';
  return asker?.hasAuthenticated() === true ? 'callers' : 'strangers';
}

/**
 * Whose failures count together. Those of new tokens count for the network that they come from: whoever has others
 * there would else open the circuit for all.
 */
function circuitOf({ group, address }: IssuerQuestion): string {
  return group === 'callers' ? `callers ${clientNetworks(address).own}` : group;
}

/** Places for questions under way, of each group its own; no network takes all of those for new tokens of callers. */
function createPlaces(): { readonly take: (question: IssuerQuestion) => Leave | null } {
  const taken = { known: 0, strangers: 0 };
  const callers = createNetworkShares(maxInFlight.callers);
  return {
    take: ({ group, address }) => {
      if (group === 'callers') return callers.take(address);
      if (taken[group] >= maxInFlight[group]) return null;
      taken[group] += 1;
      return () => {
        taken[group] -= 1;
      };
    },
  };
}
