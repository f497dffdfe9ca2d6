import { lookup } from 'node:dns/promises';
import { stat } from 'node:fs/promises';
import { connect, isIP, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { connect as connectTls } from 'node:tls';
import { isLoopback } from '../../../lib/ip-ranges.js';
import { localFiles } from '../../../adapters/files/files.js';
import { readAuthorities } from '../../../app/config/named-files.js';
import type { UpstreamSettings } from '../../../config/types.js';
import type { ClientCertificate } from '../../../proxy/upstream/connector.js';
import { networkFailure } from '../../../lib/errors.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { checkResponses, type OpenConnection } from './upstream-responses.js';
import { checkHttp2 } from './upstream-http2.js';
import { ok, problem, unreachable, warning, type Finding } from './finding.js';

const subject = 'receiver';
const pastUs = 'receiver past us';

/** Name servers that do not answer are asked for up to half a minute by the system. */
const lookupLimitMs = 5_000;

/**
 * Connects to the upstream as the proxy would, asks it what shows how it ends responses, and tries the ways that
 * lead past the proxy.
 */
export async function checkUpstream(upstream: UpstreamSettings): Promise<readonly Finding[]> {
  if (upstream.url.startsWith('unix:')) return checkUnixSocket(upstream, upstream.url.slice('unix:'.length));
  const url = new URL(upstream.url);
  const { host, port } = placeOf(url);
  const open: OpenConnection = async () => openUpstream(upstream);
  const connected = await open();
  const past = await checkBypass(host, port, upstream.connectTimeoutMs);
  if (!connected.ok) {
    return [
      unreachable(
        subject,
        `not reached at ${url.origin}: ${connected.error}`,
        'start it, or correct upstream.url, ca_file or server_name',
      ),
      past,
    ];
  }
  connected.value.destroy();
  return [ok(subject, `answers at ${url.origin}`), ...(await checkProtocol(url.host, upstream, open)), past];
}

/** Connects to what is reached over the network, its certificate verified where it has one. */
export async function openUpstream(
  upstream: UpstreamSettings,
  certificate: ClientCertificate | null = null,
): Promise<Result<Socket, string>> {
  const url = new URL(upstream.url);
  const { host, port } = placeOf(url);
  const tls = url.protocol === 'https:' ? { ...upstream, certificate } : null;
  return openConnection(host, port, tls, upstream.connectTimeoutMs);
}

function placeOf(url: URL): { readonly host: string; readonly port: number } {
  const standardPort = url.protocol === 'https:' ? 443 : 80;
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port === '' ? standardPort : Number(url.port) };
}

async function checkUnixSocket(upstream: UpstreamSettings, path: string): Promise<readonly Finding[]> {
  const openSocket: OpenConnection = async () => settled(connect({ path }), 'connect', upstream.connectTimeoutMs);
  const connected = await openSocket();
  if (!connected.ok) {
    return [unreachable(subject, `not reached at ${path}: ${connected.error}`, 'start it, or correct upstream.url')];
  }
  connected.value.destroy();
  const { mode } = await stat(path);
  const open = (mode & 0o002) !== 0;
  return [
    ok(subject, `answers at ${path}`),
    ...(await checkProtocol('localhost', upstream, openSocket)),
    open
      ? warning(
          pastUs,
          `every user of this machine may connect to ${path}`,
          `chmod o-w ${path}, with Sallyport in its group`,
        )
      : ok(pastUs, 'only its owner and group may connect'),
  ];
}

/** Asks it in the protocol that the config names. Over HTTP/2 nothing of a response is left for the next one. */
async function checkProtocol(
  host: string,
  upstream: UpstreamSettings,
  open: OpenConnection,
): Promise<readonly Finding[]> {
  if (!upstream.http2) return checkResponses(host, upstream, open);
  const authorities = upstream.caFile === null ? null : await readAuthorities(upstream.caFile, localFiles);
  return [await checkHttp2(upstream, authorities?.ok === true ? authorities.value : null)];
}

async function openConnection(
  host: string,
  port: number,
  tls: (UpstreamSettings & { readonly certificate?: ClientCertificate | null }) | null,
  limitMs: number,
): Promise<Result<Socket, string>> {
  if (tls === null) return settled(connect({ host, port }), 'connect', limitMs);
  const authorities = tls.caFile === null ? null : await readAuthorities(tls.caFile, localFiles);
  if (authorities?.ok === false) return refuse(authorities.error.messages.join('; '));
  const name = tls.serverName ?? host;
  const socket = connectTls({
    host,
    port,
    rejectUnauthorized: true,
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ...(authorities === null ? {} : { ca: authorities.value }),
    ...tls.certificate,
  });
  return settled(socket, 'secureConnect', limitMs);
}

/** The socket, once it is open. */
function settled(socket: Socket, event: 'connect' | 'secureConnect', limitMs: number): Promise<Result<Socket, string>> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      finish(refuse(`no connection within ${String(limitMs)} ms`));
    }, limitMs);
    const finish = (result: Result<Socket, string>): void => {
      clearTimeout(timer);
      if (!result.ok) socket.destroy();
      resolve(result);
    };
    socket.once(event, () => {
      finish(accept(socket));
    });
    socket.on('error', (error) => {
      finish(refuse(networkFailure(error)));
    });
  });
}

/** Whoever reaches the upstream without Sallyport may set the identity headers as they like. */
async function checkBypass(host: string, port: number, limitMs: number): Promise<Finding> {
  const addresses = await addressesOf(host);
  if (addresses === null) {
    return unreachable(pastUs, `${host} could not be looked up`, 'correct upstream.url, or the name server');
  }
  const own = ownAddresses();
  const outside = addresses.filter((address) => !isLoopback(address));
  if (outside.some((address) => own.includes(address))) {
    return warning(
      pastUs,
      `listens on ${outside.join(' ')}, which other machines may reach`,
      'bind it to 127.0.0.1 and name that in upstream.url',
    );
  }
  if (outside.length > 0) {
    const fix =
      'let only Sallyport connect to it (network policy or firewall), or run it on this machine, bound to 127.0.0.1';
    return warning(pastUs, 'runs on another machine: whether others reach it cannot be seen from here', fix);
  }
  const open = await openAt(own, port, limitMs);
  if (open.length === 0) return ok(pastUs, 'bound to loopback');
  return problem(
    pastUs,
    `port ${String(port)} answers at ${open.join(' ')} too, where callers can go past Sallyport`,
    'bind it to 127.0.0.1 only',
  );
}

async function addressesOf(host: string): Promise<readonly string[] | null> {
  if (isIP(host) !== 0) return [host];
  try {
    const limit = new Promise<null>((resolve) => {
      setTimeout(resolve, lookupLimitMs, null).unref();
    });
    const found = await Promise.race([lookup(host, { all: true }), limit]);
    return found?.map(({ address }) => address) ?? null;
  } catch {
    return null;
  }
}

/** Addresses of this machine that others may reach; link-local ones need a zone, which no caller sends. */
function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .filter(({ internal, address }) => !internal && !address.toLowerCase().startsWith('fe80:'))
    .map(({ address }) => address);
}

async function openAt(addresses: readonly string[], port: number, limitMs: number): Promise<readonly string[]> {
  const tried = await Promise.all(
    addresses.map(async (address) => {
      const connected = await settled(connect({ host: address, port }), 'connect', limitMs);
      if (!connected.ok) return [];
      connected.value.destroy();
      return [address];
    }),
  );
  return tried.flat();
}
