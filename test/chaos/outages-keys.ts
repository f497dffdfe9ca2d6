import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Setup } from './outages-setup.js';
import { outages, type Outage } from './outages.js';

const failures = 'sallyport_jwks_refreshes_total{issuer="core",result="failed"}';

const fair = ({ jwks, relays, machine }: Setup): void => {
  jwks.behave(null);
  relays.keys.resume();
  relays.keys.lag(0);
  relays.keys.alter(null);
  machine.set({});
};

/** While known keys serve: only a token whose key is not known has to wait for the source. */
const known = {
  asks: { read: ['200'], 'unknown key': ['503 keys-unavailable'] },
  reasons: ['keys_unavailable'],
  grow: [failures],
  log: 'keys could not be loaded',
  ready: 'degraded',
  end: fair,
} as const;

/** With every answer of the source as this makes it. */
const answered = (behaviour: (req: IncomingMessage, res: ServerResponse) => unknown): Pick<Outage<Setup>, 'begin'> => ({
  begin: ({ jwks }) => {
    jwks.behave(behaviour);
  },
});

export const keysOutages = outages<Setup>([
  {
    name: 'slower than `jwks.timeout`',
    ...known,
    begin: ({ relays }) => {
      relays.keys.lag(3_000);
    },
  },
  {
    name: 'half-open: takes connections, and no byte passes',
    ...known,
    begin: ({ relays }) => {
      relays.keys.stall();
    },
  },
  { name: 'resets connections when it is asked', ...known, ...answered(({ socket }) => socket.resetAndDestroy()) },
  { name: 'answers 500', ...known, ...answered((_req, res) => res.writeHead(500).end('{"keys":[]}')) },
  {
    name: 'answers an empty set',
    remark: 'The issuer’s word, once it was said again a `jwks.cooldown` later: until then known keys serve',
    asks: { read: ['401', '200'], 'unknown key': ['401', '503 keys-unavailable'] },
    reasons: ['key_unknown'],
    grow: ['sallyport_jwks_refreshes_total{issuer="core",result="empty"}'],
    become: { 'sallyport_jwks_keys{issuer="core"}': 0 },
    log: 'the issuer has withdrawn every key: its tokens are refused',
    ready: 'unavailable',
    ...answered((_req, res) => res.end('{"keys":[]}')),
    end: fair,
  },
  {
    name: 'announces more bytes than it sends',
    ...known,
    ...answered(({ socket }) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"keys":[')),
  },
  {
    name: 'announces fewer bytes than it sends',
    ...known,
    ...answered(({ socket }) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"keys":[]}')),
  },
  {
    name: 'answers without an end',
    remark: 'Its body is read up to `jwks.max_bytes`, and what frames it until `jwks.timeout`',
    ...known,
    ...answered((_req, res) => {
      const more = (): void => {
        if (!res.destroyed) res.write(' '.repeat(64 * 1024), () => setImmediate(more));
      };
      res.writeHead(200);
      more();
    }),
  },
  {
    name: 'its name cannot be looked up',
    ...known,
    begin: ({ machine, jwks }) => {
      // Connections that are open know no names.
      jwks.behave(({ socket }) => socket.destroy());
      machine.set({ unknownNames: ['keys.test'] });
    },
  },
  {
    name: 'flapping: fails every other time',
    asks: { read: ['200'], 'unknown key': ['503 keys-unavailable', '401'] },
    grow: [failures, 'sallyport_jwks_refreshes_total{issuer="core",result="ok"}'],
    remark: 'A bad answer never replaces good keys',
    begin: ({ relays }) => {
      let count = 0;
      relays.keys.alter((answer) => {
        count += 1;
        return count % 2 === 0 ? answer : Buffer.from('no HTTP\r\n\r\n');
      });
    },
    end: fair,
  },
  {
    name: 'away for longer than `jwks.max_stale`',
    asks: { read: ['503 keys-unavailable'], public: ['200'] },
    reasons: ['keys_unavailable'],
    log: 'keys could not be loaded',
    ready: 'unavailable',
    begin: ({ jwks, reload }) => {
      jwks.behave((_req, res) => res.writeHead(500).end());
      reload({ issuers: { core: { jwks: { max_stale: '1s' } } } });
    },
    end: (setup) => {
      setup.reload({});
      fair(setup);
    },
  },
]);
