import type { IncomingMessage } from 'node:http';
import { request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import type { Setup } from './outages-setup.js';
import { outages } from './outages.js';

/** Answers each request with these bytes, and closes. */
function says(bytes: string): (req: IncomingMessage) => void {
  return ({ socket }) => socket.end(bytes);
}

const fair = ({ receiver, relays }: Setup): void => {
  receiver.behave(null);
  relays.receiver.resume();
  relays.receiver.cut();
};

const failed = { reasons: ['upstream_failed'], error: 'connection_terminated', end: fair } as const;
const late = { reasons: ['upstream_timeout'], error: 'http_response_timeout', end: fair } as const;

export const receiverOutages = outages<Setup>([
  {
    name: 'slower than `response_timeout`',
    asks: { read: ['504 upstream-timeout'], write: ['504 upstream-timeout'] },
    grow: ['sallyport_unknown_outcomes_total'],
    remark: 'It may have acted: a reserved write is in doubt from then on',
    ...late,
    begin: ({ receiver }) => {
      receiver.behave((_req, res) => setTimeout(() => res.end(), 3_000));
    },
  },
  {
    name: 'half-open: takes connections, and no byte passes',
    asks: { read: ['504 upstream-timeout'], public: ['504 upstream-timeout'] },
    ...late,
    begin: ({ relays }) => {
      relays.receiver.stall();
    },
  },
  {
    name: 'idle connections forgotten by something in between',
    asks: { read: ['504 upstream-timeout'] },
    remark: 'Once for each forgotten connection; it is not used again',
    ...late,
    begin: ({ relays }) => {
      relays.receiver.forget();
    },
  },
  {
    name: 'resets connections when it is asked',
    asks: { read: ['502 upstream-failed'], write: ['502 upstream-failed'] },
    grow: ['sallyport_unknown_outcomes_total'],
    remark: 'It was asked once, and may have acted',
    ...failed,
    begin: ({ receiver }) => {
      receiver.behave(({ socket }) => socket.resetAndDestroy());
    },
  },
  {
    name: 'flapping: fails every other request',
    asks: { read: ['502 upstream-failed'] },
    remark: 'Each answer belongs to its own request: nothing is repeated, and later requests are not affected',
    ...failed,
    begin: ({ receiver }) => {
      let count = 0;
      receiver.behave((req, res) => {
        count += 1;
        if (count % 2 === 0) res.end('{}');
        else req.socket.resetAndDestroy();
      });
    },
  },
  {
    name: 'announces more bytes than it sends',
    asks: { read: ['200, visibly cut off'] },
    reasons: ['upstream_failed'],
    remark: 'The answer had begun: it is cut off',
    begin: ({ receiver }) => {
      receiver.behave(says('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'));
    },
    end: fair,
  },
  {
    name: 'sends more bytes than it announced',
    asks: { read: ['200'] },
    remark: 'The surplus reaches nobody, and the connection is closed',
    begin: ({ receiver }) => {
      receiver.behave(
        says('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen'),
      );
    },
    end: fair,
  },
  {
    name: 'gives two lengths',
    asks: { read: ['502 upstream-failed'] },
    ...failed,
    begin: ({ receiver }) => {
      receiver.behave(says('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx'));
    },
  },
  {
    name: 'its name cannot be looked up',
    asks: { read: ['503 upstream-unreachable'], write: ['503 upstream-unreachable'] },
    reasons: ['upstream_unreachable'],
    error: 'dns_error',
    grow: ['sallyport_reservations_total{result="released"}'],
    remark: 'Open connections go on',
    begin: async ({ machine, relays, proxy }) => {
      machine.set({ unknownNames: ['receiver.test'] });
      await until('connections to be lost with their name', async () => {
        relays.receiver.cut();
        return (await request(proxy.port, { path: '/healthz' })).status !== 200;
      });
    },
    end: ({ machine }) => {
      machine.set({});
    },
  },
]);
