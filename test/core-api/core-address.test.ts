import t from 'tap';
import { judgeCoreAddress } from '../../src/core-api/core-url.js';

t.test('where a Core may be: this machine, or a private network over TLS, unless the operator says more', async (t) => {
  const cases = [
    { addresses: ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1'], http: true, https: true },
    {
      addresses: [
        '10.0.0.0',
        '10.255.255.255',
        '172.16.0.1',
        '172.31.255.255',
        '192.168.0.1',
        '100.64.0.1',
        '100.127.255.255',
        'fc00::1',
        'fdff::1',
        'fe80::1%eth0',
        '::ffff:10.0.0.1',
      ],
      http: 'allowHttp',
      https: true,
    },
    {
      addresses: [
        '9.255.255.255',
        '11.0.0.0',
        '172.15.255.255',
        '172.32.0.0',
        '192.167.1.1',
        '100.63.255.255',
        '100.128.0.0',
        '169.254.169.254',
        '0.0.0.0',
        '8.8.8.8',
        '2001:db8::1',
        '::',
        '126.255.255.255',
        '128.0.0.1',
        '::ffff:8.8.8.8',
      ],
      http: 'both',
      https: 'allowPublic',
    },
  ] as const;
  const allows = (
    needed: boolean | 'allowHttp' | 'allowPublic' | 'both',
    rules: { allowHttp: boolean; allowPublic: boolean },
  ): boolean =>
    needed === 'both' ? rules.allowHttp && rules.allowPublic : typeof needed === 'boolean' ? needed : rules[needed];
  const allRules = [false, true].flatMap((allowHttp) =>
    [false, true].map((allowPublic) => ({ allowHttp, allowPublic })),
  );
  for (const { addresses, http, https } of cases) {
    for (const address of addresses) {
      for (const rules of allRules) {
        t.equal(
          judgeCoreAddress('http:', address, rules).ok,
          allows(http, rules),
          `http ${address} ${JSON.stringify(rules)}`,
        );
        t.equal(
          judgeCoreAddress('https:', address, rules).ok,
          allows(https, rules),
          `https ${address} ${JSON.stringify(rules)}`,
        );
      }
    }
  }
  const strict = { allowHttp: false, allowPublic: false };
  t.match(judgeCoreAddress('https:', '8.8.8.8', strict), { error: /--allow-public-core/ });
  t.match(judgeCoreAddress('http:', '10.0.0.1', strict), { error: /--allow-http/ });
  t.match(judgeCoreAddress('http:', 'localhost', { allowHttp: true, allowPublic: true }), {
    error: 'is no IP address',
  });
});
