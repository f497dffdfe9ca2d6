import t from 'tap';
import {
  plainAccessTokens,
  readSessionHeaders,
  withoutSessionHeaders,
  withRenewedSession,
} from '../../../src/decision/session/headers.js';

t.test('what a frontend sends is read as it stands', (t) => {
  const cases = [
    { name: 'nothing', passed: [], expected: { accessTokens: [], antiCsrf: null, hasRid: false } },
    { name: 'one cookie', passed: ['Cookie', 'sAccessToken=a.b.c'], expected: { accessTokens: ['a.b.c'] } },
    { name: 'among others', passed: ['cookie', 'x=1; sAccessToken=a.b.c;y'], expected: { accessTokens: ['a.b.c'] } },
    { name: 'blanks', passed: ['cookie', ' sAccessToken = a.b.c ;'], expected: { accessTokens: ['a.b.c'] } },
    { name: 'empty', passed: ['cookie', 'sAccessToken='], expected: { accessTokens: [''] } },
    {
      name: 'two in one field',
      passed: ['cookie', 'sAccessToken=a; sAccessToken=b'],
      expected: { accessTokens: ['a', 'b'] },
    },
    {
      name: 'two fields',
      passed: ['cookie', 'sAccessToken=a', 'Cookie', 'sAccessToken=b'],
      expected: { accessTokens: ['a', 'b'] },
    },
    {
      name: 'behind a comma: none that could be right',
      passed: ['cookie', 'x=1, sAccessToken=a'],
      expected: { accessTokens: ['1, sAccessToken=a'] },
    },
    {
      name: 'behind a blank, where some readers begin a cookie: none that could be right',
      passed: ['cookie', 'x=1 sAccessToken=a; x=1\tsAccessToken =b; x=1 y=sAccessToken=c; sAccess sAccessToken'],
      expected: { accessTokens: ['1 sAccessToken=a', '1\tsAccessToken =b'] },
    },
    { name: 'case counts', passed: ['cookie', 'saccesstoken=a'], expected: { accessTokens: [] } },
    { name: 'no value', passed: ['cookie', 'sAccessToken'], expected: { accessTokens: [] } },
    { name: 'rid', passed: ['RID', 'anti-csrf'], expected: { hasRid: true } },
    { name: 'an empty rid', passed: ['rid', ''], expected: { hasRid: false } },
    { name: 'a value that is spelt rid', passed: ['X-A', 'rid', 'X-B', 'c'], expected: { hasRid: false } },
    { name: 'anti-csrf', passed: ['Anti-CSRF', 'x'], expected: { antiCsrf: 'x' } },
    { name: 'two of them', passed: ['anti-csrf', 'x', 'anti-csrf', 'y'], expected: { antiCsrf: 'x, y' } },
  ];
  for (const { name, passed, expected } of cases) t.match(readSessionHeaders(passed), expected, name);
  t.end();
});

t.test('the upstream gets none of it, and everything else as it came', (t) => {
  const cases = [
    { name: 'other fields', passed: ['Accept', '*/*', 'X-St', '1'], expected: ['Accept', '*/*', 'X-St', '1'] },
    { name: 'cookies of others', passed: ['Cookie', 'a=1; b="x, y"'], expected: ['Cookie', 'a=1; b="x, y"'] },
    {
      name: 'the session’s cookies',
      expected: ['Cookie', 'a=1; b=2'],
      passed: [
        'Cookie',
        'a=1; sAccessToken=x; sRefreshToken=y; sIdRefreshToken=z; sFrontToken=f; sAntiCsrf=g; st-last-access-token-update=1; b=2',
      ],
    },
    { name: 'a field of nothing else', passed: ['Cookie', 'sAccessToken=x'], expected: [] },
    {
      name: 'other spellings',
      passed: ['Cookie', 'SACCESSTOKEN=x; %73AccessToken=y; a=1, sAccessToken=z; a=1 sAccessToken=z; c=3'],
      expected: ['Cookie', 'c=3'],
    },
    {
      name: 'spellings of readers that trim more than blanks, take quotes off or end at a zero byte',
      expected: ['Cookie', 'd=4'],
      passed: [
        'Cookie',
        '\xa0sAccessToken=x; \xef\xbb\xbfsRefreshToken=y; "sFrontToken"=z; %C2%A0sAntiCsrf=f; sAccessToken%00=g; d=4',
      ],
    },
    {
      name: 'fields',
      expected: ['rid', 'session'],
      passed: [
        'st-auth-mode',
        'cookie',
        'ST-Access-Token',
        'x',
        'anti-csrf',
        'y',
        'front-token',
        'z',
        'rid',
        'session',
      ],
    },
    {
      name: 'fields that look alike',
      expected: ['stx', 'z'],
      passed: ['st_access_token', 'x', 'st.refresh.token', 'y', 'Anti_CSRF', 'a', 'front.token', 'b', 'stx', 'z'],
    },
  ];
  const names = [
    'sAccessToken',
    'sRefreshToken',
    'sIdRefreshToken',
    'sFrontToken',
    'sAntiCsrf',
    'sIRTFrontend',
    'st-access-token',
    'st-refresh-token',
    'st-last-access-token-update',
  ];
  for (const name of names) t.same(withoutSessionHeaders(['Cookie', `a=1; ${name}=x`]), ['Cookie', 'a=1'], name);
  for (const { name, passed, expected } of cases) t.same(withoutSessionHeaders(passed), expected, name);
  t.end();
});

t.test('access tokens in cookies are taken where every reader has the same', (t) => {
  const token = 'eyJh.eyJz.c2ln-_0';
  const cases = [
    { name: 'none', cookies: ['a=1', 'b=2'], expected: [] },
    { name: 'one', cookies: [`a=1;sAccessToken=${token} ;b="2`], expected: [token] },
    {
      name: 'two',
      cookies: [`sAccessToken=${token}; sAccessToken=a.b.c; sAccessToken=${token}`],
      expected: [token, 'a.b.c'],
    },
    {
      name: 'words that are no token',
      cookies: ['sAccessToken=; sAccessToken=""; sAccessToken=deleted'],
      expected: [],
    },
    {
      name: 'other names',
      cookies: [
        'mysAccessToken=x; sAccessTokenOld=y; st-last-access-token-update=1; __Host-sAccessToken=x; my_sAccessToken=y',
      ],
      expected: [],
    },
    { name: 'no value', cookies: ['sAccessToken'], expected: [] },
    ...[
      `SACCESSTOKEN=${token}`,
      `\xa0sAccessToken=${token}`,
      `sAccess\xadToken=${token}`,
      `sAccess"Token=${token}`,
      `sAccess%22Token=${token}`,
      `s%00AccessToken=${token}`,
      `sAccessToken =${token}`,
      `"sAccessToken"=${token}`,
      `%73AccessToken=${token}`,
      `\\163AccessToken=${token}`,
      `\\%73AccessToken=${token}`,
      `%5C163AccessToken=${token}`,
      `a=1, sAccessToken=${token}`,
      `a=1 sAccessToken=${token}`,
      `a="1;sAccessToken=${token}"`,
      `sAccessToken="${token}"`,
      `sAccessToken=${token}=`,
      `sAccessToken=${token}.`,
      'sAccessToken=eyJh.eyJz',
      `sAccessToken=${token}, b=1`,
      `sAccessToken=${token.replace('.', '%2E')}`,
      `sAccessToken=${token.replace('.', '\\056')}`,
    ].map((cookie) => ({ name: cookie, cookies: [cookie], expected: null })),
    { name: 'in one of two lines', cookies: [`sAccessToken=${token}`, 'a=1'], expected: null },
    { name: 'cut in two', cookies: ['sAccessToken=eyJh', '.eyJz.c2ln'], expected: null },
  ];
  for (const { name, cookies, expected } of cases) {
    const passed = ['Accept', 'sAccessToken="x"', ...cookies.flatMap((cookie) => ['Cookie', cookie])];
    t.same(plainAccessTokens(passed), expected, name);
  }
  t.end();
});

t.test('a renewed access token goes back the way the old one came', (t) => {
  const renewed = { accessToken: 'new', frontToken: 'front' };
  const cookie = { domain: null, sameSite: 'lax', secure: true } as const;
  const of = [
    'X-Request-Id',
    'r',
    'Set-Cookie',
    'a=1',
    'set-cookie',
    'sAccessToken=old; Path=/',
    'st-access-token',
    'old',
    'Front-Token',
    'old',
  ];
  t.same(withRenewedSession(of, { ...renewed, to: 'header' }, cookie, 0), [
    'X-Request-Id',
    'r',
    'Set-Cookie',
    'a=1',
    'front-token',
    'front',
    'Access-Control-Expose-Headers',
    'front-token, st-access-token',
    'st-access-token',
    'new',
  ]);
  const exposing = [
    'access-control-expose-headers',
    'X-Total,Front-Token ,',
    'Access-Control-Expose-Headers',
    'x-total',
  ];
  t.same(withRenewedSession(exposing, { ...renewed, to: 'header' }, cookie, 0), [
    'front-token',
    'front',
    'Access-Control-Expose-Headers',
    'X-Total, Front-Token, st-access-token',
    'st-access-token',
    'new',
  ]);
  t.same(withRenewedSession(['Server', 'x'], { ...renewed, to: 'header' }, cookie, 0).slice(0, 4), [
    'Server',
    'x',
    'front-token',
    'front',
  ]);
  const cases = [
    {
      cookie,
      expected: 'sAccessToken=new; Path=/; Expires=Fri, 01 Jan 1971 00:00:00 GMT; HttpOnly; Secure; SameSite=Lax',
    },
    {
      cookie: { domain: 'example.com', sameSite: 'none', secure: true } as const,
      expected:
        'sAccessToken=new; Domain=example.com; Path=/; Expires=Fri, 01 Jan 1971 00:00:00 GMT; HttpOnly; Secure; SameSite=None',
    },
    {
      cookie: { domain: null, sameSite: 'strict', secure: false } as const,
      expected: 'sAccessToken=new; Path=/; Expires=Fri, 01 Jan 1971 00:00:00 GMT; HttpOnly; SameSite=Strict',
    },
  ];
  for (const one of cases) {
    t.same(withRenewedSession([], { ...renewed, to: 'cookie' }, one.cookie, 0), [
      'front-token',
      'front',
      'Access-Control-Expose-Headers',
      'front-token',
      'Set-Cookie',
      one.expected,
    ]);
  }
  t.end();
});
