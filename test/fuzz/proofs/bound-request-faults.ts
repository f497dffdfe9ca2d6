/** Checks of whole requests with bound tokens, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';
import { plantedFaults as faultsOfProofs } from './faults.js';

const clientCert = 'decision/binding/client-cert-header.js';
const certificate = 'decision/binding/certificate.js';
const proof = 'decision/binding/dpop-proof.js';
const possession = 'proxy/auth/prove-possession.js';
const verifier = 'proxy/auth/credentials/dpop-proof.js';
const request = 'proxy/auth/authorize-request.js';
const headers = 'decision/http/request-headers.js';
const forwarded = 'decision/http/forwarded-headers.js';

export const plantedFaults: readonly PlantedFault[] = [
  // RFC 9440.
  {
    name: 'text stands around a certificate',
    file: clientCert,
    from: '/^:([A-Za-z0-9+/]+={0,2}):$/',
    to: '/:([A-Za-z0-9+/]+={0,2}):/',
  },
  {
    name: 'a certificate has several spellings',
    file: clientCert,
    from: "|| der.toString('base64') !== encoded",
    to: '',
  },
  { name: 'bytes follow a certificate', file: clientCert, from: 'certificate.raw.equals(der)', to: 'true' },
  {
    name: 'nobody vouches for a certificate in front',
    file: clientCert,
    from: 'callerCertificate(certificate, true)',
    to: 'callerCertificate(certificate, false)',
  },
  { name: 'strangers name certificates', file: clientCert, from: '!trusted ||', to: '' },
  {
    name: 'a certificate in front is looked for where none is announced',
    file: clientCert,
    from: '!trusted || !isRead',
    to: '!trusted',
  },
  {
    name: 'the certificate of who is in front is the caller’s',
    file: clientCert,
    from: 'header === null ? null :',
    to: 'header === null ? (certificate ?? null) :',
  },
  { name: 'of two fields the last counts', file: headers, from: 'combine(earlier, value)', to: 'value' },
  {
    name: 'a certificate that nobody vouches for has a name',
    file: certificate,
    from: 'shown?.isVerified === true ? shown.name : null',
    to: 'shown?.name ?? null',
  },
  {
    name: 'a route asks for no certificate',
    file: certificate,
    from: 'name !== null && accepted.has(name)',
    to: 'true',
  },
  { name: 'no certificate is asked for', file: certificate, from: "denial('certificate_missing')", to: 'null' },
  { name: 'any certificate counts', file: certificate, from: 'shown.digest === certificate', to: 'true' },
  // RFC 9449.
  ...faultsOfProofs,
  {
    name: 'bound tokens are not asked about',
    file: request,
    from: 'principal.confirmation === undefined && !request.headers.saysBound',
    to: 'true',
  },
  { name: 'a plain token comes as DPoP', file: request, from: '&& !request.headers.saysBound', to: '' },
  { name: 'a key counts for its bearer', file: possession, from: '!saysBound ||', to: '' },
  {
    name: 'what binding: none ignores is asked for',
    file: possession,
    from: '&& !ignoresBinding',
    to: '',
  },
  { name: 'a certificate settles a key', file: possession, from: 'refused !== null || key === null', to: 'true' },
  { name: 'used proofs count', file: possession, from: "denial('proof_replayed')", to: 'null' },
  {
    name: 'a store that is away lets pass',
    file: possession,
    from: "case 'unavailable':",
    to: "case 'unavailable': return null;",
  },
  { name: 'the query is a part of the path', file: verifier, from: 'target: { path }', to: 'target: { raw: path }' },
  {
    name: 'no nonce is asked for',
    file: proof,
    from: "isNonce !== null && !(typeof nonce === 'string' && isNonce(nonce))",
    to: 'false',
  },
  {
    name: 'every upstream gets proofs',
    file: forwarded,
    from: 'forwarding.forwardsAuthorization && headers.dpop !== null',
    to: 'headers.dpop !== null',
  },
  {
    name: 'no upstream is told the certificate',
    file: forwarded,
    from: 'name !== null && certificate !== null',
    to: 'false',
  },
];
