import type { JsonSchema } from '../../config/docs/json-schema.js';
import { specificIssues, reportIssue } from '../../config/load/zod-issues.js';
import { createReport, type Problem, type Report } from '../../config/load/report.js';
import { locate, valueOf, type SourceNode } from '../../config/load/source-tree.js';
import { readYaml } from '../../config/load/yaml.js';
import { isCanonicalBase64Url } from '../../lib/base64url.js';
import { refuse, type Result } from '../../lib/result.js';
import type { CallerCertificate } from '../../decision/binding/certificate.js';
import { assumeCertificate, readCertificate } from '../simulate/certificates.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../lib/strict-json.js';
import { grpcContentType, type PolicyRequest } from '../simulate/decide.js';
import { z } from 'zod';
import { integer, list, map, time, word } from '../../config/schema/scalars.js';
import { reasons } from '../../decision/denial.js';

/** A file of policy tests. */
export interface Suite {
  readonly file: string;
  /** As the file names it: from its own folder. */
  readonly config: string;
  readonly cases: readonly PolicyCase[];
}

/** One request, and what is expected to become of it. */
export interface PolicyCase {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly request: PolicyRequest;
  readonly credential: { readonly kind: 'none' } | { readonly kind: 'invalid' } | CaseClaims;
  /** Milliseconds since the epoch; `null` is now. */
  readonly atMs: number | null;
  /** Name of the decide listener that is asked; `null` where the case names none. */
  readonly listener: string | null;
  readonly expect: CaseFile['expect'];
}

/** Claims of an assumed token, or of the session of a user. */
interface CaseClaims {
  readonly kind: 'claims' | 'session';
  readonly claims: JsonObject;
}

/** A suite, or what is wrong with its file. */
interface SuiteReading {
  readonly suite: Suite | null;
  readonly problems: readonly Problem[];
}

/** The text of a file that a case names, from the folder of the suite, or why it cannot be had. */
type ReadFile = (path: string) => Result<string, string>;

const readsNothing: ReadFile = () => refuse('is not read here');

/** Reads a file of policy tests. Unknown keys are errors, as in a config. */
export function readSuite(text: string, file: string, readFile: ReadFile = readsNothing): SuiteReading {
  let root: SourceNode | null = null;
  const report = createReport(file, () => root);
  root = readYaml(text, { env: {}, readFile: readsNothing }, report);
  const suite = root === null ? null : readCases(root, file, readFile, report);
  const problems = report.problems();
  return { suite: problems.length === 0 ? suite : null, problems };
}

function readCases(root: SourceNode, file: string, readFile: ReadFile, report: Report): Suite | null {
  const parsed = suiteSchema.safeParse(valueOf(root));
  if (!parsed.success) {
    for (const issue of specificIssues(parsed.error.issues)) {
      reportIssue(issue, { schema: suiteSchema, path: [], root, report });
    }
    return null;
  }
  const lines = new Map<string, number>();
  const cases = parsed.data.cases.map((entry, index) => {
    const { line } = locate(root, ['cases', index]).position;
    const first = lines.get(entry.name);
    if (first === undefined) lines.set(entry.name, line);
    else {
      report.error(['cases', index, 'name'], `the name is that of the case in line ${first} too`, 'a name of its own');
    }
    const say: Say = (message, allowed) => report.error(['cases', index], message, allowed);
    return { ...readCase(entry, line, say, readFile), file };
  });
  return { file, config: parsed.data.config, cases };
}

type Say = (message: string, allowed: string) => void;

function readCase(entry: CaseFile, line: number, say: Say, readFile: ReadFile): Omit<PolicyCase, 'file'> {
  const { name, request, claims, session, credential, at, listener, expect } = entry;
  const given = claims ?? session;
  const headers = Object.entries(request.headers).flatMap(([header, values]) =>
    values.map((value): readonly [string, string] => [header, value]),
  );
  return {
    name,
    line,
    request: { ...requestOf(request, headers), certificate: certificateOf(request, say, readFile) },
    credential:
      given === undefined
        ? { kind: credential ?? 'none' }
        : { kind: claims === undefined ? 'session' : 'claims', claims: readClaims(given, say) },
    atMs: at === undefined ? null : Date.parse(at),
    listener: listener ?? null,
    expect,
  };
}

/** A gRPC method says all that every call of it has in common; what is not one is a path that no route has. */
function requestOf(
  { method = 'POST', path, grpc, body }: CaseFile['request'],
  headers: PolicyRequest['headers'],
): PolicyRequest {
  if (grpc === undefined) return { method, path: path ?? '', headers, body };
  return { method: 'POST', path: `/${grpc}`, headers: [grpcContentType, ...headers], body };
}

function certificateOf(
  { client_certificate: given }: CaseFile['request'],
  say: Say,
  readFile: ReadFile,
): CallerCertificate | null {
  if (given === undefined) return null;
  if (typeof given !== 'string') {
    const { name = null, thumbprint, verified } = given;
    return assumeCertificate(name, { thumbprint, isVerified: verified });
  }
  const text = readFile(given);
  const read = text.ok ? readCertificate(text.value) : null;
  if (read === null) say(`client_certificate ${given}: ${text.ok ? 'no certificate' : text.error}`, certificateAllowed);
  return read;
}

function readClaims(claims: Readonly<Record<string, unknown>>, say: Say): JsonObject {
  const read = parseStrictJson(Buffer.from(JSON.stringify(claims)), { maxDepth: defaultMaxDepth });
  if (read.ok) return read.value;
  say('the claims cannot stand in a token', 'texts, numbers, truth values, lists and maps');
  return {};
}

const words = 'a text';
const name = z.string('a name').min(1, 'a name').max(200, 'at most 200 characters');
const scalar = z.union([z.string(), z.number().transform(String), z.boolean().transform(String)], words);
const headerValues = z.union(
  [scalar.transform((value) => [value]), z.array(scalar, 'a text, or a list of them')],
  'a text, or a list of them',
);
const reasonAllowed = 'a denial reason, or null where the request is let through';

const grpcAllowed = 'a gRPC method, such as shop.v1.Orders/List';

const certificateAllowed = 'a file with a certificate in PEM, or name and thumbprint of one';
const thumbprintAllowed = 'SHA-256 of a certificate in DER, 43 characters of base64url';

const certificateSchema = z.union(
  [
    z.string().min(1),
    map({
      name: name.optional(),
      thumbprint: z
        .string(thumbprintAllowed)
        .length(43, thumbprintAllowed)
        .refine(isCanonicalBase64Url, thumbprintAllowed)
        .optional(),
      verified: z.boolean('true or false').prefault(true),
    }).refine((given) => given.name !== undefined || given.thumbprint !== undefined, certificateAllowed),
  ],
  certificateAllowed,
);

const requestSchema = map({
  method: z.string('a method').min(1, 'a method').optional(),
  path: z
    .string('a path, with its query where it has one')
    .min(1, 'a path, with its query where it has one')
    .optional(),
  grpc: z
    .string(grpcAllowed)
    .regex(/^[^/?#]+\/[^/?#]+$/, grpcAllowed)
    .optional(),
  headers: z.record(z.string(), headerValues, 'a map of names and values').prefault({}),
  body: z.string(words).nullable().prefault(null),
  client_certificate: certificateSchema.optional(),
}).refine(
  ({ method, path, grpc }) =>
    grpc === undefined ? method !== undefined && path !== undefined : method === undefined && path === undefined,
  'method and path, or grpc',
);

const expectSchema = map({
  status: integer(100, 599).optional(),
  reason: z
    .string(reasonAllowed)
    .refine((value) => (reasons as readonly string[]).includes(value), reasonAllowed)
    .meta({ enum: reasons })
    .nullable()
    .optional(),
  route: z.string('the name of a route, or null').nullable().optional(),
  headers: z
    .record(z.string(), scalar.nullable(), 'a map of names and values; null says that there is none')
    .optional(),
  reservation: word('none', 'required').optional(),
}).refine(
  (expected) => Object.values(expected).some((value) => value !== undefined),
  'at least one of status, reason, route, headers, reservation',
);

const listenerAllowed = 'decide, or one of several listeners, such as decide[0]';

const credentialAllowed = 'one of claims, session and credential';

const caseSchema = map({
  name,
  request: requestSchema,
  claims: z.record(z.string(), z.unknown(), 'a map of claims').optional(),
  session: z.record(z.string(), z.unknown(), 'a map of claims').optional(),
  credential: word('none', 'invalid').optional(),
  at: time().optional(),
  listener: z
    .string(listenerAllowed)
    .regex(/^decide(\[\d{1,4}\])?$/, listenerAllowed)
    .optional(),
  expect: expectSchema,
}).refine(
  ({ claims, session, credential }) => [claims, session, credential].filter((given) => given !== undefined).length <= 1,
  credentialAllowed,
);

const suiteSchema = map({
  config: z
    .string('the path of a config, from the folder of this file')
    .min(1, 'the path of a config, from the folder of this file'),
  cases: list(caseSchema, 1, 'cases'),
});

/** The schema of a file, with which editors complete its keys. */
export function suiteJsonSchema(): JsonSchema {
  return z.toJSONSchema(suiteSchema, { io: 'input', target: 'draft-7' }) as JsonSchema;
}

type CaseFile = z.output<typeof caseSchema>;
