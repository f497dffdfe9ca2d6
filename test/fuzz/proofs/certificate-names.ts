/** Certificates with names of any kind, and by what name their owner is known: judged by the product and by a model. */
import { callerCertificate, refusedCaller } from '../../../src/decision/binding/certificate.js';
import { certificateOf, type NamePart, type OtherName } from '../../support/x509.js';
import { drawFrom, pick, several, type Draw } from '../draw.js';
import type { ProofReport } from './proof-campaign.js';

const values = [
  'checkout',
  'checkout',
  'checkout',
  'checkout',
  'a, b',
  'a+b',
  '"q"',
  '#x',
  ' x ',
  'a;b<c>',
  'back\\slash',
  'caf\u00e9',
  'a\nCN=evil',
  '=',
];
const uris = [
  'spiffe://shop.example/checkout',
  'spiffe://shop.example/checkout',
  'spiffe://shop.example/checkout',
  'spiffe://shop.example',
  'spiffe://Shop_1.example/a-b/c.d',
  'spiffe://shop.example/checkout/',
  'spiffe://shop.example//checkout',
  'spiffe://shop.example/a b',
  'spiffe://shop.example/a?b',
  'spiffe://shop.example:1/a',
  'SPIFFE://shop.example/a',
  'https://shop.example/checkout',
  'spiffe://shop.example/a, URI:spiffe://shop.example/b',
  'spiffe://shop.example/caf\u00e9',
  `spiffe://shop.example/${'x'.repeat(1_002)}`,
  `spiffe://shop.example/${'x'.repeat(1_003)}`,
];
const others = ['a.example', 'x, URI:spiffe://shop.example/checkout', 'URI:spiffe://shop.example/checkout', '"', 'x"y'];

interface Names {
  readonly subject: readonly (readonly NamePart[])[];
  readonly otherNames: readonly OtherName[];
}

function someNames(draw: Draw): Names {
  const part = (): NamePart => ({ type: pick(draw, ['CN', 'O', 'OU']), value: pick(draw, values) });
  const long: NamePart = { type: 'O', value: 'x'.repeat(pick(draw, [1_000, 1_020, 1_022, 1_023])) };
  const subject = several(draw, pick(draw, [1, 1, 2, 3, 0]), () => several(draw, pick(draw, [1, 1, 1, 2]), part));
  const otherNames = several(draw, pick(draw, [0, 1, 1, 2, 3]), (): OtherName => {
    const kind = pick(draw, ['URI', 'URI', 'DNS', 'email'] as const);
    return { kind, value: pick(draw, kind === 'URI' ? uris : others) };
  });
  return { subject: draw.below(12) === 0 ? [[long]] : subject, otherNames };
}

/** X509-SVID §2 and RFC 4514 §2, from how the certificate was made. */
function nameOf({ subject, otherNames }: Names): string | null {
  const [uri, ...more] = otherNames.filter(({ kind }) => kind === 'URI');
  if (uri !== undefined && more.length === 0 && isSpiffeId(uri.value)) {
    return uri.value.length > 1_024 ? null : uri.value;
  }
  const text = [...subject]
    .reverse()
    .map((set) => set.map(({ type, value }) => `${type}=${escaped(value)}`).join(' + '))
    .join(',');
  return text === '' || text.length > 1_024 || /[^ -~]/.test(text) ? null : text;
}

function isSpiffeId(text: string): boolean {
  const [scheme, nothing, ...parts] = text.split('/');
  return (
    scheme === 'spiffe:' && nothing === '' && parts.length > 0 && parts.every((part) => /^[A-Za-z0-9._-]+$/.test(part))
  );
}

/** RFC 4514 §2.4, and controls as hex. */
function escaped(value: string): string {
  return value
    .replace(/[,+"\\<>;]/g, (character) => `\\${character}`)
    .replace(/^[# ]| $/g, (character) => `\\${character}`)
    .replaceAll('\n', '\\0A');
}

/** What routes ask for. */
const accepted: ReadonlySet<string> = new Set([
  'spiffe://shop.example/checkout',
  'CN=checkout',
  'CN=checkout,O=checkout',
]);

export function runCertificateNames(seed: number, cases: number, maxFaults = 5): Promise<ProofReport> {
  const faults: string[] = [];
  let [done, passed] = [0, 0];
  while (done < cases && faults.length < maxFaults) {
    const draw = drawFrom(seed, done);
    const names = someNames(draw);
    const isVerified = pick(draw, [true, true, false]);
    const shown = callerCertificate(certificateOf(names.subject, names.otherNames), isVerified);
    const expected = nameOf(names);
    if (shown.name !== expected) faults.push(`case ${done}: ${String(shown.name)}, not ${String(expected)}`);
    const passes = refusedCaller(accepted, shown) === null;
    if (passes !== (isVerified && expected !== null && accepted.has(expected))) {
      faults.push(`case ${done}: ${String(passes)}`);
    }
    if (passes) passed += 1;
    done += 1;
  }
  return Promise.resolve({ cases: done, accepted: passed, faults });
}
