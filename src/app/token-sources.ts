import { createTokenEndpoint } from '../adapters/jwks/token-endpoint.js';
import { createTokenRequests } from '../adapters/oauth/token-request.js';
import { createSharedSource, createSingleUseSource } from '../adapters/tokens/cached-source.js';
import type { TokenSourceDeps } from '../adapters/tokens/fetch-state.js';
import { createFileSource } from '../adapters/tokens/file-source.js';
import { createSubjectSource } from '../adapters/tokens/subject-source.js';
import type { OAuthTokenSettings, TokenSourceSettings } from '../config/types.js';
import { createCoreTokens } from '../core-api/core-tokens.js';
import { newProofSigner } from '../core-api/proof-signer.js';
import { accept } from '../lib/result.js';
import type { Files } from '../ports/system.js';
import type { ProofSigner, TokenFetcher, TokenSource } from '../ports/tokens.js';
import type { CertificatePair } from './certificates/certificates.js';
import { certificateFilesOf, type CertificateFiles } from './certificates/target-certificates.js';

interface Deps extends Omit<TokenSourceDeps, 'random'> {
  readonly files: Files;
  /** From 0 to 1, for jitter; chance unless given. */
  readonly random?: () => number;
}

/** Where tokens come from, with the key that they are bound to. */
export interface AttachedTokens extends TokenSource {
  /** `null` where they count for whoever has them. */
  readonly proofs: ProofSigner | null;
}

/**
 * Makes a source of tokens of the calling side. Nothing is fetched or read before a request asks for a token.
 *
 * @param shown the certificate that targets are shown, where the source names the same files: tokens are asked for with
 *   this pair, whatever the files hold by then. `null` where the source reads its files itself.
 */
export function createTokenSource(
  settings: TokenSourceSettings,
  given: Deps,
  shown: CertificatePair | null = null,
): AttachedTokens {
  const proofs = settings.kind !== 'file' && settings.dpop ? newProofSigner() : null;
  const asked = certificateFilesOf(settings);
  const files = asked === null || shown === null ? given.files : filesAsShown(given.files, asked, shown);
  return { ...sourceOf(settings, { ...given, files }, proofs), proofs };
}

function filesAsShown(files: Files, { certFile, keyFile }: CertificateFiles, { cert, key }: CertificatePair): Files {
  const texts = new Map([
    [certFile, cert],
    [keyFile, key],
  ]);
  return {
    ...files,
    read: (path, limits) => {
      const text = texts.get(path);
      return text === undefined ? files.read(path, limits) : Promise.resolve(accept(text));
    },
  };
}

function sourceOf(settings: TokenSourceSettings, given: Deps, proofs: ProofSigner | null): TokenSource {
  const deps = { ...given, random: given.random ?? Math.random };
  const { name } = settings;
  switch (settings.kind) {
    case 'core': {
      const create = settings.singleUse ? createSingleUseSource : createSharedSource;
      return create(name, 'core', createCoreTokens(settings, { ...deps, proofs }), deps);
    }
    case 'oauth': {
      const requests = requestsOf(settings, deps, proofs);
      return settings.grant === 'client_credentials'
        ? createSharedSource(name, 'oauth', requests, deps)
        : createSubjectSource(name, requests, deps);
    }
    case 'file':
      return createFileSource(name, settings.path, deps);
  }
}

function requestsOf(settings: OAuthTokenSettings, deps: Deps, proofs: ProofSigner | null): TokenFetcher {
  const { issuer, metadataUrls, caFile, timeoutMs } = settings;
  const { clock, files } = deps;
  const endpoint = createTokenEndpoint({ issuer, urls: metadataUrls, timeoutMs }, { caFile, files }, clock);
  return createTokenRequests(settings, { clock, files, proofs, endpoint });
}
