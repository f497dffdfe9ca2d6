import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import { judgeCoreAddress, type CoreAddressRules } from './core-url.js';

/** The address is one that the rules refuse; the message says why and names no more than the address. */
export class RefusedAddress extends Error {}

/** The connection did not come about, so that nothing was sent. */
export class NotConnected extends Error {}

/** Looks a name up as `node:dns` does. */
export type Lookup = (hostname: string, options: LookupOptions & { all: true }, callback: LookupCallback) => void;
type LookupCallback = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

interface ConnectorOptions {
  readonly rules: CoreAddressRules;
  readonly ca: readonly string[] | null;
  readonly connectTimeoutMs: number;
  readonly lookup?: Lookup | undefined;
}

/**
 * Makes connections to addresses that the rules allow. A name is looked up once for each connection, every address of
 * it has to be allowed, and the connection goes to those very addresses: a name that changes in between changes
 * nothing.
 */
export function createPinnedConnector(options: ConnectorOptions): buildConnector.connector {
  const protocols = { 'http:': connectorFor('http:', options), 'https:': connectorFor('https:', options) };
  return (target, callback) => {
    const protocol = target.protocol === 'https:' ? 'https:' : 'http:';
    const refused = refusalOf(protocol, target.hostname.replace(/^\[|\]$/g, ''), options.rules);
    if (refused !== null) {
      callback(refused, null);
      return;
    }
    protocols[protocol](target, (...result) => {
      const [error] = result;
      if (error === null) callback(...result);
      else {
        callback(error instanceof RefusedAddress ? error : new NotConnected('not connected', { cause: error }), null);
      }
    });
  };
}

function connectorFor(
  protocol: 'http:' | 'https:',
  { rules, ca, connectTimeoutMs, lookup = systemLookup }: ConnectorOptions,
): buildConnector.connector {
  return buildConnector({
    // Said here, so that NODE_TLS_REJECT_UNAUTHORIZED in the environment does not unsay it.
    rejectUnauthorized: true,
    timeout: connectTimeoutMs,
    ...(ca === null ? {} : { ca: [...ca] }),
    lookup: (
      hostname: string,
      asked: LookupOptions,
      callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
    ) => {
      lookup(hostname, { ...asked, all: true }, (error, addresses) => {
        // With an error there are no addresses, not even an empty list.
        const refused =
          error ??
          addresses
            .map(({ address }) => refusalOf(protocol, address, rules, hostname))
            .find((found) => found !== null) ??
          null;
        const [first] = refused === null ? addresses : [];
        if (first === undefined) callback(refused ?? new NotConnected('no address'), '', 0);
        else if (asked.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      });
    },
  });
}

/** For a name that is not looked up yet there is nothing to judge. */
function refusalOf(
  protocol: 'http:' | 'https:',
  address: string,
  rules: CoreAddressRules,
  name?: string,
): RefusedAddress | null {
  if (name === undefined && isIP(address) === 0) return null;
  const judged = judgeCoreAddress(protocol, address, rules);
  if (judged.ok) return null;
  return new RefusedAddress(`${name === undefined ? address : `${name} (${address})`} ${judged.error}`);
}
