import { createRequire } from 'node:module';
import t from 'tap';
import { normalizeApiDomain } from '../../src/core-api/core-url.js';

interface SdkDomain {
  readonly getAsStringDangerous: () => string;
}

const sdk = createRequire(import.meta.url)('supertokens-node/lib/build/normalisedURLDomain.js') as {
  readonly default: new (text: string) => SdkDomain;
};

function bySdk(text: string): string | null {
  try {
    return new sdk.default(text).getAsStringDangerous();
  } catch {
    return null;
  }
}

t.test('an API domain is normalised as the real SDK does it', async (t) => {
  const same = [
    'https://api.example.com',
    'HTTPS://API.Example.COM',
    'https://api.example.com/',
    'https://api.example.com/auth/',
    'https://api.example.com:443/x',
    'http://api.example.com:80',
    'http://api.example.com:8080/a',
    ' https://api.example.com ',
    'api.example.com',
    'api.example.com:8443/auth',
    '.example.com',
    'localhost',
    'localhost:3000',
    'localhost.example',
    'api.localhost.example',
    'my.localhost',
    '127.0.0.1.example',
    '1.2.3.4.example',
    'x.1.2.3.4.y',
    'a1.b2',
    '127.1',
    '0x7f.0.0.1',
    'https://a.example/http://b.example',
    'http://localhost:3000',
    '127.0.0.1',
    '127.0.0.1:3567',
    'http://127.0.0.1:3567/recipe',
    '10.0.0.1',
    '256.0.0.1.example',
    'https://[::1]:3567',
    'https://bücher.example'.normalize('NFC').replace('ü', 'u'),
  ];
  for (const text of same) t.same(normalizeApiDomain(text), { ok: true, value: bySdk(text) }, text);
});

t.test('what is no domain is refused, as by the SDK, and what it would silently drop too', async (t) => {
  const none = [
    'a.1.2.3.4',
    '1.2.3.4.5',
    '',
    '/',
    '/auth',
    'example',
    'ftp://a.example',
    'https://',
    'http://a b.example',
  ];
  for (const text of none) {
    t.equal(bySdk(text) === null || text === 'ftp://a.example', true, `${text}: by the SDK`);
    t.match(normalizeApiDomain(text), { ok: false, error: /such as https:/ }, text);
  }
  const dropped = [
    'https://a:b@api.example.com',
    'https://api.example.com?x',
    'https://api.example.com#x',
    'https://api.example.com\\x',
    'bücher.example',
    'a.example/https://b.example',
    'x://a.example/https://b.example',
  ];
  for (const text of dropped) t.match(normalizeApiDomain(text), { ok: false }, text);
});
