import type { Setup } from './outages-setup.js';
import { outages } from './outages.js';

const fair = ({ redis, relays, machine }: Setup): void => {
  relays.redis.leadTo(redis.port);
  relays.redis.resume();
  relays.redis.lag(0);
  relays.redis.alter(null);
  relays.redis.cut();
  machine.set({});
};

/** Nothing is sent without a reservation; what needs none is served as ever. */
const away = {
  asks: { write: ['503 store-unavailable'], read: ['200'], public: ['200'] },
  reasons: ['store_unavailable'],
  grow: ['sallyport_reservations_total{result="unavailable"}'],
  end: fair,
} as const;

const down = {
  ...away,
  become: { sallyport_store_up: 0 },
  log: 'the store takes no reservations: reserving routes answer 503',
  ready: 'degraded',
} as const;

export const storeOutages = outages<Setup>([
  {
    name: 'slower than `reserve_timeout`',
    ...away,
    remark: 'Counts as down after several late answers, and as up again with one in time',
    begin: ({ relays }) => {
      relays.redis.lag(3_000);
    },
  },
  {
    name: 'half-open: takes connections, and no byte passes',
    ...down,
    begin: ({ relays }) => {
      relays.redis.stall();
    },
  },
  {
    name: 'frozen: the process hangs',
    ...down,
    begin: ({ redis }) => {
      redis.freeze();
    },
    end: ({ redis }) => {
      redis.thaw();
    },
  },
  {
    name: 'killed, and started again',
    ...down,
    grow: [],
    remark: 'Counted in `sallyport_store_failovers_total`; single-use tokens from before are refused for a time',
    begin: async ({ redis }) => redis.kill(),
    end: async ({ redis }) => redis.restart(),
  },
  {
    name: 'resets every connection',
    ...down,
    begin: ({ relays }) => {
      // Nobody listens there.
      relays.redis.leadTo(1);
      relays.redis.cut();
    },
  },
  {
    name: 'flapping: connections break every 100 ms',
    ...away,
    asks: { write: ['503 store-unavailable', '200'], read: ['200'] },
    remark: 'A write whose reservation was confirmed goes on; no other is sent',
    begin: ({ relays, redis }) => {
      let goesOn = true;
      const turn = (): void => {
        if (!goesOn) return;
        relays.redis.cut();
        setTimeout(turn, 100).unref();
      };
      turn();
      endings.set(redis, () => {
        goesOn = false;
      });
    },
    end: (setup) => {
      endings.get(setup.redis)?.();
      fair(setup);
    },
  },
  {
    name: 'announces longer answers than it sends',
    ...down,
    begin: ({ relays }) => {
      relays.redis.alter((answer) =>
        Buffer.from(answer.toString('latin1').replace(/^([$*])\d+/gm, '$19999999'), 'latin1'),
      );
      relays.redis.cut();
    },
  },
  {
    name: 'answers what is not Redis',
    ...down,
    begin: ({ relays }) => {
      relays.redis.alter(() => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'));
      relays.redis.cut();
    },
  },
  {
    name: 'out of memory',
    ...away,
    remark: 'Results of writes under way are still kept',
    begin: async ({ redis }) => redis.client.config('SET', 'maxmemory', '100000'),
    end: async ({ redis }) => redis.client.config('SET', 'maxmemory', '0'),
  },
  {
    name: 'made a replica of a primary that is away',
    ...away,
    begin: async ({ redis }) => redis.client.replicaof('127.0.0.1', '1'),
    end: async (setup) => {
      await setup.redis.client.replicaof('NO', 'ONE');
      fair(setup);
    },
  },
  {
    name: 'its name cannot be looked up',
    ...down,
    begin: ({ machine, relays }) => {
      machine.set({ unknownNames: ['redis.test'] });
      relays.redis.leadTo(1);
      relays.redis.cut();
    },
  },
]);

/** What stops a outage that goes on by itself. */
const endings = new Map<object, () => void>();
