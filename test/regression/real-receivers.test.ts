/** What the policy matched is what real receivers parse: Express, and what comes with Python. */
import t from 'tap';
import { readTarget } from '../../src/decision/http/request-target.js';
import { startProxy } from '../proxy/harness.js';
import type { RawResponse } from '../support/raw-client.js';
import { pathReaders, type PathReader } from './path-readers.js';
import { askAll, hostileTargets, publicAndAdmin } from './path-targets.js';
import { secret, startRealReceivers } from './real-receivers.js';

/**
 * What is let through where receivers disagree, and why an operator has to say so: `encoded_slashes` and
 * `path_parameters`.
 */
const lenient = publicAndAdmin.map((route) => ({ ...route, encoded_slashes: 'allow', path_parameters: 'allow' }));

function judgedSegments(target: string): readonly string[] {
  const read = readTarget(target, 8192);
  if (!read.ok) throw new Error(`${target} was let through`);
  return read.value.segments;
}

const withoutLastSlash = (segments: readonly string[]): readonly string[] =>
  segments.length > 1 && segments.at(-1) === '' ? segments.slice(0, -1) : segments;

t.test('real upstreams find their routes and files by the segments that the policy matched', async (t) => {
  // What one of them was sent tells what is let through: the others are asked for that alone.
  let targets = hostileTargets();
  for (const { name, port, segmentsOf, foldsLastSlash } of await startRealReceivers(t)) {
    const proxy = await startProxy(t, {
      upstreamUrl: `http://127.0.0.1:${String(port)}`,
      config: { routes: publicAndAdmin },
    });
    const asked = await askAll(proxy.port, targets);
    t.same(
      asked.filter(({ answer }) => answer === null || answer.status >= 500),
      [],
      `${name}: each is answered`,
    );
    t.same(
      asked.filter(({ answer }) => answer?.text.includes(secret) === true).map(({ target }) => target),
      [],
      `${name}: no secret is read`,
    );
    const passed = asked.flatMap(({ target, answer }) =>
      answer !== null && answer.field('proxy-status') === null ? [{ target, answer }] : [],
    );
    t.comment(`${name}: ${String(targets.length)} targets, ${String(passed.length)} passed`);
    t.ok(passed.length > 50);
    targets = passed.map(({ target }) => target);
    const wrong = passed.flatMap(({ target, answer }) => {
      const [judged, parsed] = [judgedSegments(target), segmentsOf(answer)];
      const wanted = foldsLastSlash ? withoutLastSlash(judged) : judged;
      return JSON.stringify(parsed) === JSON.stringify(wanted) ? [] : [{ target, wanted, parsed }];
    });
    t.same(wrong, [], name);
  }
});

t.test(
  'Express keeps an encoded slash and parameters in the segment where a route that allows them has them',
  async (t) => {
    const [receiver] = await startRealReceivers(t);
    if (receiver === undefined) throw new Error('there is no Express');
    const proxy = await startProxy(t, {
      upstreamUrl: `http://127.0.0.1:${String(receiver.port)}`,
      config: { routes: lenient },
    });
    const asked = await askAll(
      proxy.port,
      hostileTargets().filter((target) => /%2f|;/i.test(target)),
    );
    const passed = asked.flatMap(({ target, answer }) =>
      answer !== null && answer.field('proxy-status') === null ? [{ target, answer }] : [],
    );
    const special = passed.filter(({ target }) => /%2f|;/i.test(target.split('?')[0] ?? ''));
    t.ok(special.length > 10, `${String(special.length)} of ${String(passed.length)} have one`);
    const wrong = passed.filter(
      ({ target, answer }) =>
        JSON.stringify(receiver.segmentsOf(answer)) !==
        JSON.stringify(judgedSegments(target).map((segment) => segment.replace(/%2f/gi, '/'))),
    );
    t.same(
      wrong.map(({ target }) => target),
      [],
    );
  },
);

/** What stands in for whom. */
function emulationOf(name: string, answer: RawResponse): PathReader | undefined {
  if (name === 'express') {
    return pathReaders[
      answer.field('x-file') === null
        ? 'Express, its routes: split, then each segment decoded'
        : 'Express, its files: decoded, slashes merged, dots taken away'
    ];
  }
  const wsgi = name === 'wsgiref' ? pathReaders['WSGI: PATH_INFO is decoded once'] : undefined;
  return wsgi === undefined ? undefined : (target) => Buffer.from(wsgi(target) ?? '', 'latin1').toString('utf8');
}

t.test('the readers that stand in for Express and WSGI read as these do, whatever they are sent', async (t) => {
  const targets = hostileTargets().filter((target) => target.startsWith('/'));
  for (const { name, port, segmentsOf } of await startRealReceivers(t)) {
    if (name === 'files of http.server') continue;
    const compared = (await askAll(port, targets)).flatMap(({ target, answer }) => {
      const real = answer === null ? null : (segmentsOf(answer)?.join('/') ?? null);
      const read = answer === null ? undefined : emulationOf(name, answer);
      return real === null || read === undefined ? [] : [{ target, real: `/${real}`, read: read(target) }];
    });
    t.ok(compared.length > 100, `${name}: ${String(compared.length)} compared`);
    t.same(
      compared.filter(({ real, read }) => real !== read),
      [],
      name,
    );
  }
});
