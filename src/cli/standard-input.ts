import type { Readable } from 'node:stream';
import { defaultMaxDepth, parseStrictJson, type JsonObject, type JsonProblem } from '../decision/strict-json.js';
import { refuse, type Result } from '../decision/result.js';

const problems: Readonly<Record<JsonProblem, string>> = {
  encoding: 'it is not UTF-8',
  too_deep: 'it is nested too deeply',
  syntax: 'it is not JSON',
  not_an_object: 'it is not a JSON object',
  duplicate_member: 'a member stands in it twice',
  not_representable: 'it holds a number or a text that cannot be passed on',
};

/** Reads one JSON object to the end of the input, in words refusing what is none or larger than `maxBytes`. */
export async function readJsonInput(input: Readable, maxBytes: number): Promise<Result<JsonObject, string>> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > maxBytes) return refuse(`it is larger than ${String(maxBytes)} bytes`);
    chunks.push(bytes);
  }
  const parsed = parseStrictJson(Buffer.concat(chunks), { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed : refuse(problems[parsed.error]);
}
