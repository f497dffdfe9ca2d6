import type * as Sdk from 'supertokens-node';
import type * as SessionRecipe from 'supertokens-node/recipe/session';
import type { SessionSettings } from '../../config/types.js';
import { codeOf } from '../../lib/errors.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** SuperTokens' SDK as it is imported. */
export interface SessionSdk {
  readonly core: Pick<typeof Sdk, 'init'>;
  readonly session: Pick<typeof SessionRecipe, 'init' | 'getSessionWithoutRequestResponse' | 'Error'>;
}

/** Imports the SDK; `import` itself unless a test says otherwise. */
type ImportSdk = () => Promise<SessionSdk>;

/** What to do where it is missing; the version is that of the peer dependency in package.json. */
const install = 'npm install supertokens-node@24';

/** What one call of the SDK tells of itself: the SDK hands it to the interceptor of its calls to the Core. */
export interface CallContext {
  hasAskedCore: boolean;
}

const contextKey = 'sallyport';

/** The SDK is one for the process: it keeps the first settings that it gets. */
let initialised: string | null = null;

/**
 * Loads the SDK, an optional peer dependency: 80 packages that nobody without sessions should have to carry. Refuses
 * with what to do; a second time in a process with other settings, too, for the SDK would not take them.
 */
export async function loadSessionSdk(
  settings: SessionSettings,
  importSdk: ImportSdk = importPeer,
): Promise<Result<SessionSdk, string>> {
  let sdk: SessionSdk;
  try {
    sdk = await importSdk();
  } catch (error) {
    const isMissing = codeOf(error) === 'ERR_MODULE_NOT_FOUND';
    return refuse(
      `sessions need the package supertokens-node, which ${isMissing ? 'is not installed' : 'cannot be loaded'}: ${install}`,
    );
  }
  const functions: readonly unknown[] = [sdk.core.init, sdk.session.init, sdk.session.getSessionWithoutRequestResponse];
  if (!functions.every((member) => typeof member === 'function')) {
    return refuse(`sessions need another version of supertokens-node: ${install}`);
  }
  const problem = initialise(sdk, settings);
  return problem === null ? accept(sdk) : refuse(problem);
}

/** What the SDK is to hand to the interceptor. */
export function contextOf(context: CallContext): Readonly<Record<string, unknown>> {
  return { [contextKey]: context };
}

async function importPeer(): Promise<SessionSdk> {
  const [core, session] = await Promise.all([import('supertokens-node'), import('supertokens-node/recipe/session')]);
  return { core, session };
}

/** What is wrong where it was initialised before: with other settings, or by the application. */
function initialise(
  { core, session }: SessionSdk,
  { coreUrl, apiKey, apiDomain, apiBasePath }: SessionSettings,
): string | null {
  const settings = JSON.stringify([coreUrl, apiKey, apiDomain, apiBasePath]);
  if (initialised !== null) return initialised === settings ? null : settingsCount;
  // By default the SDK would refuse to verify some sessions without the request.
  const recipe = session.init({ antiCsrf: 'NONE', useDynamicAccessTokenSigningKey: true });
  const settled = { isOurs: false };
  core.init({
    framework: 'custom',
    telemetry: false,
    supertokens: {
      connectionURI: coreUrl,
      ...(apiKey === null ? {} : { apiKey }),
      disableCoreCallCache: true,
      networkInterceptor: (request, userContext) => {
        noteCall(userContext[contextKey]);
        return request;
      },
    },
    // For what pages the sessions are plays no part in verifying them.
    appInfo: {
      appName: 'sallyport',
      apiDomain,
      apiBasePath: apiBasePath === '' ? '/' : apiBasePath,
      websiteDomain: apiDomain,
    },
    recipeList: [
      (...made) => {
        settled.isOurs = true;
        return recipe(...made);
      },
    ],
  });
  // `init` ignores every call after the first, and says nothing.
  if (!settled.isOurs) return isTheirs;
  initialised = settings;
  return null;
}

const settingsCount = 'sessions were opened with other settings in this process: restart to change them';

const isTheirs =
  'sessions cannot be verified in a process that calls SuperTokens.init itself, for the SDK keeps the settings of the ' +
  'first call: put a sidecar in front, or have another process call it';

function noteCall(context: unknown): void {
  if (typeof context === 'object' && context !== null && 'hasAskedCore' in context) context.hasAskedCore = true;
}
