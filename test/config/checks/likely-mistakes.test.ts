import { METHODS } from 'node:http';
import t from 'tap';
import { registeredMethods } from '../../../src/config/checks/likely-mistakes.js';
import { configText, errorsOf, problemsOf, withRoutes } from '../inspection.js';

const who = 'subjects: [s], permissions: [p]';
const core = 'issuer: "https://api.example.com", audience: orders, source: microservice, token_type: service';

/** A route with these keys; the rest of it is sound. */
function route(keys: string): string {
  return withRoutes([`name: a, ${keys}`]);
}

/** An issuer with these keys in the place of usual ones. */
function issuer(keys: Readonly<Record<string, string>>): string {
  const usual = Object.fromEntries(
    core.split(', ').map((pair) => [pair.slice(0, pair.indexOf(':')), pair.slice(pair.indexOf(':') + 1)]),
  );
  const text = Object.entries({ ...usual, ...keys })
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ');
  return configText({ issuers: `{ core: { ${text} } }` });
}

const mistaken: readonly { readonly name: string; readonly text: string; readonly says: RegExp }[] = [
  {
    name: 'a parameter as Express writes it',
    text: route(`methods: [GET], path: "/orders/:id/items", ${who}`),
    says: /5:36: warning: routes\[0\]\.path has ":id", which is a literal here; allowed: \{id\}, which takes a segment; %3Aid for the literal$/,
  },
  {
    name: 'one of several paths',
    text: route(`methods: [GET], path: [/a, "/b/:order_id"], ${who}`),
    says: /warning: routes\[0\]\.path\[1\] has ":order_id", which is a literal here; allowed: \{order_id\}, /,
  },
  {
    name: 'a method with a letter too many',
    text: route(`methods: [GETT], path: /a, ${who}`),
    says: /warning: routes\[0\]\.methods\[0\] is "GETT", which is no registered method, did you mean "GET"\?; allowed: GET, HEAD, POST, /,
  },
  {
    name: 'a method unlike any',
    text: route(`methods: [BREW], path: /a, ${who}`),
    says: /warning: routes\[0\]\.methods\[0\] is "BREW", which is no registered method; allowed: GET, /,
  },
  {
    name: 'every subject',
    text: route('methods: [GET], path: /a, subjects: ["*"], permissions: [p]'),
    says: /warning: routes\[0\]\.subjects\[0\] is "\*", compared to the letter: there are no wildcards here; allowed: the names themselves$/,
  },
  {
    name: 'the beginning of a permission',
    text: route('methods: [GET], path: /a, subjects: [s], permissions: [p, "orders:*"]'),
    says: /warning: routes\[0\]\.permissions\[1\] is "orders:\*", compared to the letter: there are no wildcards here; /,
  },
  {
    name: 'a wildcard in a pair',
    text: route(
      'methods: [GET], path: /a, any_of: [{ subjects: [s], permissions: [p] }, { subjects: ["svc-*"], permissions: [p] }]',
    ),
    says: /warning: routes\[0\]\.any_of\[1\]\.subjects\[0\] is "svc-\*", compared to the letter: there are no wildcards here; /,
  },
  {
    name: 'two subjects in one text',
    text: route('methods: [GET], path: /a, subjects: ["checkout,reporting"], permissions: [p]'),
    says: /warning: routes\[0\]\.subjects\[0\] is "checkout,reporting", one name with a comma in it; allowed: an item for each name$/,
  },
  {
    name: 'a wildcard among what is revoked',
    text: configText({ revoked: '{ key_ids: ["d-*"] }' }),
    says: /warning: revoked\.key_ids\[0\] is "d-\*", compared to the letter: there are no wildcards here; /,
  },
  {
    name: 'every key id',
    text: issuer({ key_ids: '{ accept: ["*"] }' }),
    says: new RegExp(
      'warning: issuers\\.core\\.key_ids\\.accept\\[0\\] is "\\*", which lets the Core’s static keys in: they are never replaced, so that ' +
        'whoever has one signs tokens for ever; allowed: \\["d-\\*"\\], or reject: \\["s-\\*"\\] beside it$',
    ),
  },
  {
    name: 'static keys',
    text: issuer({ key_ids: '{ accept: ["d-*", "s-*"] }' }),
    says: /accept\[1\] is "s-\*", which lets the Core’s static keys in/,
  },
  {
    name: 'one static key',
    text: issuer({ key_ids: '{ accept: [s-1] }' }),
    says: /accept\[0\] is "s-1", which lets the Core’s static keys in/,
  },
  {
    name: 'static keys of which one is rejected',
    text: issuer({ key_ids: '{ accept: ["s*"], reject: ["s-1"] }' }),
    says: /accept\[0\] is "s\*", which lets the Core’s static keys in/,
  },
  {
    name: 'a slash at the end of the issuer',
    text: issuer({ issuer: '"https://api.example.com/"' }),
    says: /warning: issuers\.core\.issuer ends in a slash, and iss is compared to the letter: the Core writes none; allowed: the iss of the tokens; jwks_url beside it/,
  },
  {
    name: 'the address of the keys for the issuer',
    text: issuer({ issuer: '"https://api.example.com/auth/jwt/jwks.json"' }),
    says: /warning: issuers\.core\.issuer is "https:\S+", which looks like the address of keys or metadata; allowed: the iss of the tokens; the address in jwks_url$/,
  },
  {
    name: 'metadata for the issuer',
    text: issuer({
      issuer: '"https://a.example/.well-known/openid-configuration"',
      jwks_url: '"https://a.example/jwks"',
    }),
    says: /warning: issuers\.core\.issuer is .*looks like the address of keys or metadata/,
  },
  {
    name: 'metadata for the keys',
    text: issuer({ jwks_url: '"https://api.example.com/.well-known/openid-configuration"' }),
    says: /warning: issuers\.core\.jwks_url is the address of metadata, which holds no keys; allowed: what it names as jwks_uri$/,
  },
  {
    name: 'several audiences',
    text: issuer({ audience: '"orders, invoices"' }),
    says: /warning: issuers\.core\.audience is "orders, invoices", compared as one text; allowed: the one name that the tokens have in aud$/,
  },
  {
    name: 'several audiences by URL',
    text: issuer({ audience: '"https://a.example https://b.example"' }),
    says: /audience is .*, compared as one text; /,
  },
  {
    name: 'any audience',
    text: issuer({ audience: '"*"' }),
    says: /warning: issuers\.core\.audience is "\*", compared to the letter: there are no wildcards here; /,
  },
  {
    name: 'several sources in one text',
    text: issuer({ source: '"a,b"' }),
    says: /warning: issuers\.core\.source is "a,b", one name with a comma in it; allowed: an item for each name$/,
  },
  {
    name: 'any type of token',
    text: issuer({ token_type: '["*"]' }),
    says: /issuers\.core\.token_type\[0\] is "\*", compared to the letter: /,
  },
  ...['0.0.0.0/0', '::/0'].map((block) => ({
    name: `trust in ${block}`,
    text: configText({ listen: `{ host: 127.0.0.1, port: 8080, trust_forwarded: ["10.0.0.1", "${block}"] }` }),
    says: /warning: listen\.trust_forwarded\[1\] is every address: whoever connects writes X-Forwarded-For; allowed: the proxies in front$/,
  })),
  ...['"0.0.0.0/1", "128.0.0.0/1"', '"2000::/4", "3000::/4"'].map((blocks) => ({
    name: `trust in ${blocks}`,
    text: configText({ listen: `{ host: 127.0.0.1, port: 8080, trust_forwarded: [10.0.0.1, ${blocks}] }` }),
    says: /warning: listen\.trust_forwarded is every address: whoever connects writes X-Forwarded-For; allowed: the proxies in front$/,
  })),
  {
    name: 'a variable as a shell writes it',
    text: issuer({ audience: '$AUDIENCE' }),
    says: /warning: issuers\.core\.audience is "\$AUDIENCE", taken to the letter; allowed: "\$\{env:AUDIENCE\}" for a variable of the environment$/,
  },
  {
    name: 'a variable as Kubernetes writes it',
    text: issuer({ audience: '"orders-$(REGION)"' }),
    says: /audience is "orders-\$\(REGION\)", taken to the letter; allowed: "\$\{env:REGION\}" for a variable of the environment$/,
  },
  {
    name: 'a template that nobody filled in',
    text: issuer({ audience: '"{{ .Values.audience }}"' }),
    says: /warning: issuers\.core\.audience is "\{\{ \.Values\.audience \}\}", a template that nobody filled in; allowed: what stands in its place$/,
  },
];

t.test('what is legal and hardly ever meant is a warning that says what was meant', (t) => {
  for (const { name, text, says } of mistaken) {
    const problems = problemsOf(text);
    t.equal(problems.length, 1, `${name}: ${problems.join('\n')}`);
    t.match(problems[0], says, name);
  }
  t.end();
});

const meant: readonly { readonly name: string; readonly text: string }[] = [
  { name: 'a colon within a segment', text: route(`methods: [GET], path: "/orders/1:cancel", ${who}`) },
  { name: 'a colon alone', text: route(`methods: [GET], path: "/orders/:", ${who}`) },
  { name: 'a colon that is encoded', text: route(`methods: [GET], path: "/orders/%3Aid", ${who}`) },
  { name: 'methods that are used and not registered', text: route(`methods: [PURGE, QUERY], path: /a, ${who}`) },
  { name: 'every method', text: route(`methods: ["*"], path: /a, ${who}, idempotency: { mode: none, because: x }`) },
  { name: 'a parameter', text: route(`methods: [GET], path: "/a/{id}", ${who}`) },
  { name: 'key ids of another issuer', text: issuer({ key_ids: '{ accept: ["*"], reject: ["s-*"] }' }) },
  { name: 'all but a wider beginning', text: issuer({ key_ids: '{ accept: ["*"], reject: ["s*"] }' }) },
  {
    name: 'a slash at the end of an issuer that says where its keys are',
    text: issuer({ issuer: '"https://a.example/"', jwks_url: '"https://a.example/jwks"' }),
  },
  { name: 'an audience that is a URL', text: issuer({ audience: '"https://orders.example"' }) },
  { name: 'an audience with a space', text: issuer({ audience: '"Order Service"' }) },
  { name: 'a dollar sign', text: issuer({ audience: '"$5"' }) },
  { name: 'a placeholder', text: issuer({ audience: '"${env:AUDIENCE}"' }) },
  { name: 'a network', text: configText({ listen: '{ host: 127.0.0.1, port: 8080, trust_forwarded: [10.0.0.0/8] }' }) },
  {
    name: 'what a Core would not write, of another provider',
    text: configText({
      issuers:
        '{ auth0: { profile: oauth, issuer: "https://acme.eu.auth0.com/", audience: orders, key_ids: { accept: [s-1] } } }',
    }),
  },
];

t.test('what looks alike and may be meant is none', (t) => {
  for (const { name, text } of meant) t.same(problemsOf(text, { env: { AUDIENCE: 'orders' } }), [], name);
  t.end();
});

t.test('a value of a placeholder is checked and never shown', (t) => {
  const [problem, ...more] = problemsOf(route('methods: [GET], path: /a, subjects: ["${env:WHO}"], permissions: [p]'), {
    env: { WHO: 'secret-*' },
  });
  t.equal(more.length, 0);
  t.match(problem, /subjects\[0\] is what \$\{env:WHO\} stands for, compared to the letter: there are no wildcards/);
  t.notMatch(problem, /secret/);
  t.end();
});

t.test('segments of other routers are errors that say what takes a segment', (t) => {
  const rows = [
    { path: '/a/<id>', allowed: /has "<id>", which no request may have; allowed: \{id\}, which takes a segment$/ },
    { path: '/a/[id]', allowed: /has "\[id\]", which no request may have; allowed: \{id\}, which takes a segment$/ },
    {
      path: '/a/*',
      allowed:
        /allowed: \{name\}, which takes a segment; \*\* as the last one for anything below; %2A for an asterisk$/,
    },
    {
      path: '/a/{id:[0-9]+}',
      allowed:
        /malformed parameter in "\{id:\[0-9\]\+\}"; allowed: \{id\}: the name alone, as a whole segment; %7B and %7D for braces$/,
    },
    { path: '/a/{id}.json', allowed: /allowed: \{id\}: the name alone, as a whole segment; / },
    { path: '/a/{*rest}', allowed: /allowed: \{rest\}: the name alone, as a whole segment; / },
    { path: '/a?b=c', allowed: /has a query; allowed: the path alone: queries are passed on unjudged$/ },
  ];
  for (const { path, allowed } of rows) {
    t.match(errorsOf(route(`methods: [GET], path: "${path}", ${who}`)), [allowed], path);
  }
  t.end();
});

t.test('a variable in braces is an error that says how it is written', (t) => {
  t.match(problemsOf(issuer({ audience: '"${AUDIENCE}"' })), [
    /"\$\{AUDIENCE\}" is no placeholder, did you mean \$\{env:AUDIENCE\}\?; allowed: /,
  ]);
  t.end();
});

t.test('the upstream is no listener of Sallyport', (t) => {
  for (const [name, port] of [
    ['itself listens', 8080],
    ['listens for operators', 9901],
    ['listens for probes', 9902],
    ['listens for the workload', 8181],
    ['listens for proxies that ask', 9000],
  ] as const) {
    const found = errorsOf(
      configText({
        upstream: `{ url: "http://127.0.0.1:${String(port)}" }`,
        probes: '{ host: 127.0.0.1 }',
        egress:
          '{ targets: [{ name: a, prefix: /a, url: "http://127.0.0.1:1", allow: [{ methods: [GET], path: /b }] }] }',
        decide: '[{ port: 9001, form: caddy }, { port: 9000, form: nginx }]',
      }),
    );
    t.match(
      found,
      [
        new RegExp(
          `2:18: error: upstream\\.url is where Sallyport ${name}; allowed: the address of the service behind it$`,
        ),
      ],
      name,
    );
  }
  t.end();
});

t.test('every method that Node.js reads is known', (t) => {
  t.same(
    METHODS.filter((method) => !registeredMethods.has(method)),
    [],
  );
  t.end();
});
