import t from 'tap';
import { formatCurlProblem, parseCurlConfig, type CurlConfig } from '../../../src/core-api/curl/curl-config.js';

const key = 'k3y-of-twenty-and-more-characters';
const url = 'url = http://core:3567\n';

function parsed(text: string): CurlConfig {
  const config = parseCurlConfig(text);
  if (!config.ok) throw new Error(formatCurlProblem('file', config.error));
  return config.value;
}

t.test('an option and its value, in every form that curl reads', async (t) => {
  const expected = [{ name: 'api-key', value: key }];
  const forms = [
    `header = "api-key: ${key}"`,
    `header: "api-key: ${key}"`,
    `header "api-key: ${key}"`,
    `header="api-key: ${key}"`,
    `header:"api-key:${key}"`,
    `header =:= api-key:${key}`,
    `header\tapi-key:${key}`,
    `--header "api-key: ${key}"`,
    `--header api-key:${key}`,
    `-H "api-key: ${key}"`,
    `-H api-key:${key}`,
    `-Hapi-key:${key}`,
    `-sSfH "api-key: ${key}"`,
    `-sHapi-key:${key}`,
    `   header = "api-key: ${key}"   # why`,
    `header = "api-key: ${key}"\r`,
    `header = "api-key: \\k\\${key.slice(1)}"`,
    `header = "\\api-key: ${key}"`,
    `header = "api-key:\\t${key} "`,
    `header = api-key:${key} # comment`,
  ];
  for (const form of forms) t.same(parsed(`${url}${form}`).headers, expected, form);
});

t.test('what is no option', async (t) => {
  const text = `# comment\n   # another\n/ a third\n* a fourth\n\n \t\r\n${url}# header = "api-key: ${key}"`;
  t.same(parsed(text), { url: 'http://core:3567', headers: [], caFile: null, connectTimeoutMs: null, timeoutMs: null });
});

t.test('quotes and escapes', async (t) => {
  const cases = [
    ['x: a\\"b', 'a"b'],
    ['x: a\\\\b', 'a\\b'],
    ['x: a\\tb', 'a\tb'],
    ['x: a\\qb', 'aqb'],
    ['x: a # b', 'a # b'],
    ['x: a: b=c', 'a: b=c'],
    ['x:    a  ', 'a'],
  ];
  for (const [written = '', value] of cases) {
    t.same(parsed(`${url}header = "${written}"`).headers, [{ name: 'x', value }], written);
  }
});

t.test('where the Core is', async (t) => {
  const cases = [
    ['http://core:3567', 'http://core:3567'],
    ['http://core:3567/', 'http://core:3567'],
    ['http://core:3567/recipe/jwt', 'http://core:3567'],
    ['http://core:3567/recipe/jwt/', 'http://core:3567'],
    ['https://Core.Example:443/base/path', 'https://core.example/base/path'],
    ['https://core.example/base/recipe/jwt', 'https://core.example/base'],
    ['http://[::1]:3567/recipe/user/passwordhash/import', 'http://[::1]:3567'],
    ['http://core/recipe/signinup/code/consume', 'http://core'],
    ['http://core/recipe/signinup/code', 'http://core'],
    ['http://core/recipe/signinup', 'http://core'],
    ['http://core/recipe/user', 'http://core'],
    ['http://core/apiversion', 'http://core'],
    ['http://core/recipe/other', 'http://core/recipe/other'],
  ];
  for (const [written = '', base] of cases) t.equal(parsed(`url = "${written}"`).url, base, written);
});

t.test('the rest that a call obeys, and what changes nothing', async (t) => {
  const text =
    `${url}cacert = "ca.pem"\nconnect-timeout = 2.5\nmax-time = 30\nuser-agent = "ops/1.0"\nsilent\nshow-error\n--fail\nno-progress-meter\n-sS\n` +
    'fail-with-body\nretry = 3\nrequest = POST\ndata = @-\njson = "@-"\nno-insecure\nno-location\n' +
    'compressed\nproto = "=http,https"\ntlsv1.2\nhttp1.1\ngloboff\n' +
    'header = "Content-Type: application/json; charset=utf-8"\nheader = "Accept:"\nheader = "Expect:"\n-m 30\n';
  t.same(parsed(text), {
    url: 'http://core:3567',
    headers: [{ name: 'User-Agent', value: 'ops/1.0' }],
    caFile: 'ca.pem',
    connectTimeoutMs: 2_500,
    timeoutMs: 30_000,
  });
  t.equal(parsed('proto = "=https"\nurl = https://core').url, 'https://core');
});

t.test('what curl would obey and a call here would not is refused, with its line and its name', async (t) => {
  const cases: readonly {
    readonly name: string;
    readonly text: string;
    readonly line: number;
    readonly says: RegExp;
  }[] = [
    {
      name: 'proxy',
      text: `${url}proxy = http://other`,
      line: 2,
      says: /`proxy` is not supported: the call goes to the address/,
    },
    {
      name: 'insecure',
      text: `${url}\ninsecure`,
      line: 3,
      says: /`insecure` is not supported: certificates are always verified/,
    },
    { name: '-k', text: `${url}-k`, line: 2, says: /`insecure`/ },
    { name: '-sSk', text: `${url}-sSk`, line: 2, says: /`insecure`/ },
    { name: 'body', text: `${url}data = '{"a":1}'`, line: 2, says: /`data` may be @- only/ },
    { name: 'another body', text: `${url}data-raw = x`, line: 2, says: /`data-raw`.*standard input/ },
    { name: 'method', text: `${url}request = PUT`, line: 2, says: /`request` may be POST only/ },
    { name: 'output', text: `${url}output = "file"`, line: 2, says: /`output`/ },
    { name: 'client certificate', text: `${url}cert = a.pem`, line: 2, says: /`cert`/ },
    { name: 'user', text: `${url}user = "a:${key}"`, line: 2, says: /`user`.*only credential/ },
    { name: 'redirects', text: `${url}location`, line: 2, says: /`location`.*never followed/ },
    { name: '-L', text: `${url}-L`, line: 2, says: /`location`/ },
    { name: 'verbose', text: `${url}-v`, line: 2, says: /`verbose`.*show the headers/ },
    { name: 'other config', text: `${url}config = other`, line: 2, says: /`config`.*this file/ },
    { name: 'variable of curl 8.3', text: `${url}variable = "x=${key}"`, line: 2, says: /`variable`/ },
    { name: 'next', text: `${url}next`, line: 2, says: /`next`/ },
    { name: 'two URLs', text: `${url}url = http://b`, line: 2, says: /second `url`/ },
    { name: 'two CA files', text: `${url}cacert = a\ncacert = b`, line: 3, says: /second `cacert`/ },
    {
      name: 'a header twice',
      text: `${url}header = "Api-Key: ${key}"\n-H "api-key: ${key}"`,
      line: 3,
      says: /api-key a second time/,
    },
    { name: 'headers of another file', text: `${url}header = @/etc/headers`, line: 2, says: /another file/ },
    { name: 'a header without a value', text: `${url}header = "api-key:"`, line: 2, says: /api-key has no value/ },
    {
      name: 'unquoted: curl would send no value',
      text: `${url}header = api-key: ${key}`,
      line: 2,
      says: /not in double quotes/,
    },
    { name: 'single quotes', text: `${url}header = 'api-key: ${key}'`, line: 2, says: /double quotes/ },
    { name: 'no colon', text: `${url}header = "${key}"`, line: 2, says: /not NAME: VALUE/ },
    { name: 'an empty value for real', text: `${url}header = "api-key;"`, line: 2, says: /empty value/ },
    { name: 'a line in a header', text: `${url}header = "a: ${key}\\r\\nb: c"`, line: 2, says: /visible ASCII/ },
    { name: 'not ASCII', text: `${url}header = "a: é${key}"`, line: 2, says: /visible ASCII/ },
    { name: 'Host', text: `${url}header = "Host: b"`, line: 2, says: /Host belongs/ },
    {
      name: 'another type',
      text: `${url}header = "Content-Type: text/plain"`,
      line: 2,
      says: /application\/json only/,
    },
    { name: 'a quote that does not end', text: `${url}header = "api-key: ${key}`, line: 2, says: /no closing quote/ },
    {
      name: 'an escaped quote at the end',
      text: `${url}header = "api-key: ${key}\\"`,
      line: 2,
      says: /no closing quote/,
    },
    {
      name: 'words behind the quote',
      text: `${url}header = "api-key: a" ${key}`,
      line: 2,
      says: /behind the closing quote/,
    },
    { name: 'a switch with a value', text: `${url}silent = true`, line: 2, says: /`silent` takes no value/ },
    { name: 'no value', text: `${url}header`, line: 2, says: /`header` has no value/ },
    { name: 'dashes and a sign', text: `${url}--header = "api-key: ${key}"`, line: 2, says: /double quotes/ },
    { name: 'a sign that touches', text: `${url}--header: x`, line: 2, says: /no option/ },
    { name: 'part of a name, which not every curl completes', text: `${url}head "a: b"`, line: 2, says: /`head`/ },
    {
      name: 'upper case, which not every curl reads',
      text: `${url}HEADER "a: b"`,
      line: 2,
      says: /did you mean `header`/,
    },
    { name: 'a typing error', text: `${url}heder = "api-key: ${key}"`, line: 2, says: /did you mean `header`/ },
    { name: 'a name of every object', text: `${url}constructor`, line: 2, says: /no option/ },
    { name: 'the key alone', text: `${url}${key}`, line: 2, says: /no option/ },
    { name: 'the key behind its name', text: `${url}api-key: ${key}`, line: 2, says: /no option/ },
    { name: 'a dash', text: `${url}-`, line: 2, says: /dash/ },
    { name: 'an unknown letter', text: `${url}-@`, line: 2, says: /no option/ },
    { name: 'a value that touches and more', text: `${url}-Hapi-key: ${key}`, line: 2, says: /double quotes/ },
    { name: 'NUL', text: `${url}silent\0`, line: 2, says: /NUL/ },
    { name: 'byte order mark', text: `\ufeff${url}`, line: 1, says: /byte order mark/ },
    { name: 'no URL', text: `header = "api-key: ${key}"`, line: 1, says: /no `url`/ },
    { name: 'nothing', text: '', line: 1, says: /no `url`/ },
    { name: 'no scheme', text: 'url = core:3567', line: 1, says: /http:\/\// },
    { name: 'another scheme', text: 'url = ftp://core', line: 1, says: /http:\/\// },
    { name: 'a password in the URL', text: `url = http://a:${key}@core`, line: 1, says: /password/ },
    { name: 'a query', text: `url = http://core/?k=${key}`, line: 1, says: /query/ },
    { name: 'dot segments', text: 'url = http://core/a/../recipe/jwt', line: 1, says: /dot segments/ },
    { name: 'a set of URLs', text: 'url = http://core/{a,b}', line: 1, says: /path/ },
    { name: 'no host', text: 'url = http://', line: 1, says: /no URL/ },
    { name: 'https only', text: `proto = "=https"\n${url}`, line: 1, says: /https only/ },
    { name: 'other protocols', text: `${url}proto = ftp`, line: 2, says: /`proto` may be/ },
    { name: 'no time', text: `${url}max-time = 0`, line: 2, says: /`max-time` is no number/ },
    { name: 'too long', text: `${url}max-time = 3600.001`, line: 2, says: /up to 3600/ },
    { name: 'no number', text: `${url}connect-timeout = 5s`, line: 2, says: /`connect-timeout`/ },
  ];
  for (const { name, text, line, says } of cases) {
    const config = parseCurlConfig(text);
    const problem = config.ok ? null : formatCurlProblem('core.curl', config.error);
    t.match(problem, says, name);
    t.match(problem, new RegExp(`^core\\.curl:${String(line)}: `), `${name}: line`);
    t.notMatch(problem, key, `${name}: nothing secret`);
  }
  t.equal(parsed(`${url}max-time = 3600`).timeoutMs, 3_600_000);
});
