/**
 * What nghttp2 lets an upstream do without end is ended by us: PING and SETTINGS, each confirmed before more are sent.
 */
import t from 'tap';
import { until } from '../../../support/until.js';
import { startUpstream } from '../upstream-harness.js';
import { code, flag, frameType, ping, settingsFrame, startFrameUpstream, whole, type Peer } from './frame-upstream.js';

const kinds = [
  { name: 'PING', bytes: ping(), type: frameType.ping },
  { name: 'SETTINGS', bytes: settingsFrame([[3, 100]]), type: frameType.settings },
];

const confirmed = ({ frames }: Peer, wanted: number): number =>
  frames.filter(({ type, flags }) => type === wanted && (flags & flag.ack) !== 0).length;

/** Sends them in rounds of 200 until the connection ends, or that many rounds. */
async function sendRounds(peer: Peer, rounds: number, { bytes, type }: (typeof kinds)[number]): Promise<void> {
  const before = confirmed(peer, type);
  for (let round = 1; round <= rounds && !peer.socket.destroyed; round += 1) {
    peer.send(...Array.from({ length: 200 }, () => bytes));
    const wanted = before + 200 * round;
    await until('they are confirmed', () => confirmed(peer, type) >= wanted || peer.socket.destroyed);
  }
}

for (const kind of kinds) {
  t.test(`${kind.name} of the upstream that are each answered end the connection all the same`, async (t) => {
    const upstream = await startFrameUpstream(t, (id, peer) => {
      if (peer.number > 1) peer.send(whole(id, 'next'));
    });
    const { send, ask } = startUpstream(t, upstream.url, { http2: true });
    const heard = send();
    await until('it came', () => upstream.came(frameType.headers).length === 1);
    const [peer] = upstream.peers;
    if (peer === undefined) throw new Error('there is no connection');
    // More than 500 a second on any machine that does anything at all.
    await sendRounds(peer, 200, kind);
    await until('the connection ended', () => peer.socket.destroyed);
    t.same(
      upstream.came(frameType.goaway).map(({ payload }) => payload.readUInt32BE(4)),
      [code.enhanceYourCalm],
    );
    await until('it is told', () => heard.ends() > 0);
    t.equal(heard.failure()?.reason, 'upstream_failed');
    t.equal(await ask(), '200 next');
  });

  t.test(`as many ${kind.name} as gRPC servers measure with end nothing`, async (t) => {
    const upstream = await startFrameUpstream(t, () => undefined);
    const { send } = startUpstream(t, upstream.url, { http2: true });
    const heard = send();
    await until('it came', () => upstream.came(frameType.headers).length === 1);
    const [peer] = upstream.peers;
    if (peer === undefined) throw new Error('there is no connection');
    await sendRounds(peer, 4, kind);
    peer.send(whole(1, 'answered'));
    await until('it ended', () => heard.ends() > 0);
    t.equal(heard.body().toString(), 'answered');
  });
}
