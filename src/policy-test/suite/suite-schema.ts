/** What a file of policy tests may say. */
import { z } from 'zod';
import { integer, list, map, time, word } from '../../config/sections/scalars.js';
import { reasons } from '../../decision/denial.js';

const words = 'a text';
const name = z.string('a name').min(1, 'a name').max(200, 'at most 200 characters');
const scalar = z.union([z.string(), z.number().transform(String), z.boolean().transform(String)], words);
const fieldValues = z.union(
  [scalar.transform((value) => [value]), z.array(scalar, 'a text, or a list of them')],
  'a text, or a list of them',
);
const reasonAllowed = 'a denial reason, or null where the request is let through';

const requestSchema = map({
  method: z.string('a method').min(1, 'a method'),
  path: z.string('a path, with its query where it has one').min(1, 'a path, with its query where it has one'),
  headers: z.record(z.string(), fieldValues, 'a map of names and values').prefault({}),
  body: z.string(words).nullable().prefault(null),
});

const expectSchema = map({
  status: integer(100, 599).optional(),
  reason: z
    .string(reasonAllowed)
    .refine((value) => (reasons as readonly string[]).includes(value), reasonAllowed)
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

const credentialAllowed = 'one of claims, session and credential';

export const caseSchema = map({
  name,
  request: requestSchema,
  claims: z.record(z.string(), z.unknown(), 'a map of claims').optional(),
  session: z.record(z.string(), z.unknown(), 'a map of claims').optional(),
  credential: word('none', 'invalid').optional(),
  at: time().optional(),
  expect: expectSchema,
}).refine(
  ({ claims, session, credential }) => [claims, session, credential].filter((given) => given !== undefined).length <= 1,
  credentialAllowed,
);

export const suiteSchema = map({
  config: z
    .string('the path of a config, from the folder of this file')
    .min(1, 'the path of a config, from the folder of this file'),
  cases: list(caseSchema, 1, 'cases'),
});

export type CaseFile = z.output<typeof caseSchema>;
