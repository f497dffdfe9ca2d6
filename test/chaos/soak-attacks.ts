/** Requests of people who want in. Each has one right answer, whatever fails, and none may reach the receiver. */
import { base64url, mintToken, signToken } from '../support/tokens.js';
import { rsaKey, type RsaKey } from '../support/keys.js';
import type { SoakDeployment } from './soak-deployment.js';

export interface Attack {
  readonly name: string;
  /** The whole request, but for its `X-Request-Id`, which is put before its last line. */
  readonly bytes: string;
  readonly right: readonly string[];
}

const stranger = rsaKey('stranger');

/** Every attack, made anew: tokens are of this moment. */
export function attacksNow(deployment: SoakDeployment): Attack[] {
  const good = deployment.token();
  const [head = '', payload = '', signature = ''] = good.split('.');
  const nowS = Math.floor(Date.now() / 1000);
  const asAdmin = base64url(
    JSON.stringify({ ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), sub: 'admin' }),
  );
  const tokens = {
    'no token': null,
    'a foreign key': mintToken({ key: { ...stranger, keyId: String(kidOf(head)) } }),
    'a key nobody published': mintToken({ key: stranger, header: { kid: 'x-1' } }),
    'no signature': `${head}.${payload}.`,
    'alg none': `${base64url('{"alg":"none","typ":"JWT"}')}.${payload}.`,
    'another payload': `${head}.${asAdmin}.${signature}`,
    padding: `${good}=`,
    cut: good.slice(0, -5),
    'twice a member': signToken(
      `{"alg":"RS256","kid":"${String(kidOf(head))}","kid":"x"}`,
      JSON.stringify({ sub: 'admin' }),
      stranger.privateKey,
    ),
    expired: deployment.token({ iat: nowS - 400, exp: nowS - 100 }),
    'from tomorrow': deployment.token({ iat: nowS + 86_400, exp: nowS + 86_700 }),
    'for ever': deployment.token({ exp: nowS + 10 ** 9 }),
    'for another service': deployment.token({ aud: 'payments' }),
    'for several': deployment.token({ aud: ['orders'] }),
    'of another issuer': deployment.token({ iss: 'https://evil.example.com' }),
    'of a session': deployment.token({ sessionHandle: 'x' }),
  };
  const withdrawn: RsaKey | null = deployment.withdrawnKey();
  return [
    ...Object.entries(tokens).map(([name, token]) => ({ name, right: ['401'], bytes: get('/orders', token) })),
    ...(withdrawn === null
      ? []
      : [{ name: 'a withdrawn key', right: ['401'], bytes: get('/orders', mintToken({ key: withdrawn })) }]),
    { name: 'no permission', right: ['403'], bytes: get('/orders', deployment.token({ permissions: [] })) },
    { name: 'no approved caller', right: ['403'], bytes: get('/orders', deployment.token({ sub: 'stranger' })) },
    { name: 'no such route', right: ['403'], bytes: get('/admin', good) },
    { name: 'another route', right: ['403'], bytes: get('/admin/users', good) },
    {
      name: 'named as somebody else',
      right: ['403'],
      bytes: get('/admin/users', good, 'X-Auth-Subject: admin\r\nX_Auth_Subject: admin\r\n'),
    },
    ...[
      '/orders/../admin/users',
      '/orders/%2e%2e/admin/users',
      '/orders//admin',
      '/orders;/admin',
      '/orders\\admin',
      '/orders%2fadmin',
      '/%61dmin/users',
    ].map((path) => ({ name: `the target ${path}`, right: ['bad-target'], bytes: get(path, good) })),
    {
      name: 'a field hidden by Connection',
      right: ['bad-request'],
      bytes: get('/orders', good, 'Connection: X-Auth-Subject\r\n'),
    },
    { name: 'two hosts', right: ['bad-request'], bytes: get('/orders', good, 'Host: b\r\n') },
    {
      name: 'two lengths',
      right: ['bad-request'],
      bytes: get('/orders', good, 'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n').concat(
        '0\r\n\r\nGET /admin/users HTTP/1.1\r\nHost: a\r\n\r\n',
      ),
    },
  ];
}

function get(path: string, token: string | null, fields = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${token === null ? '' : `Authorization: Bearer ${token}\r\n`}${fields}X-Request-Id: attack-1\r\n\r\n`;
}

function kidOf(head: string): unknown {
  return (JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid?: unknown }).kid;
}
