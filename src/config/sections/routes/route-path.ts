import type { RoutePath, Segment } from '../../../decision/route/policy.js';
import { readTarget } from '../../../decision/http/request-target.js';
import { accept, refuse, type Result } from '../../../lib/result.js';

/** What is wrong with a path. */
interface PathFault {
  readonly message: string;
  readonly allowed: string;
  /** The same with a piece of the path in it, which is not to be shown where the path came from a placeholder. */
  readonly hint?: string;
}

const parameter = /^\{([A-Za-z_][A-Za-z0-9_-]*)\}$/;

/** A parameter as Flask and Next.js write it. */
const otherParameter = /^[<[](?:[a-z]+:)?([A-Za-z_][A-Za-z0-9_-]*)[>\]]$/;

/** Longer than any path of a config. */
const maxPathBytes = 65_536;

/**
 * Reads a route's path. Its literals pass the same gate as the targets of requests, so that a path which no request can
 * have is refused, and are decoded once: what has to be encoded (`%20`, `%C3%A9`) may be, and nothing else.
 */
export function readRoutePath(text: string): Result<RoutePath, PathFault> {
  if (/^[^?#]*\?[^/]*=/.test(text)) {
    return refuse({ message: 'has a query', allowed: 'the path alone: queries are passed on unjudged' });
  }
  if (!text.startsWith('/')) {
    return refuse({ message: 'does not begin with /', allowed: 'a path such as /orders/{id}' });
  }
  const segments: Segment[] = [];
  const names = new Set<string>();
  const parts = text.split('/').slice(1);
  for (const [index, part] of parts.entries()) {
    const segment = readSegment(part, index === parts.length - 1);
    if (!segment.ok) return segment;
    if (segment.value.kind === 'parameter') {
      if (names.has(segment.value.name)) {
        return refuse({ message: `has two segments {${segment.value.name}}`, allowed: 'a name once' });
      }
      names.add(segment.value.name);
    }
    segments.push(segment.value);
  }
  return accept({ text, segments });
}

function readSegment(part: string, isLast: boolean): Result<Segment, PathFault> {
  if (part === '**') {
    return isLast
      ? accept({ kind: 'rest' })
      : refuse({ message: 'has ** before its end', allowed: '** as the last segment' });
  }
  const name = parameter.exec(part)?.[1];
  if (name !== undefined) return accept({ kind: 'parameter', name });
  if (/[{}]/.test(part)) {
    const meant = /[A-Za-z_][A-Za-z0-9_-]*/.exec(part)?.[0] ?? 'name';
    return refuse({
      message: `has a malformed parameter in ${JSON.stringify(part)}`,
      allowed: bracedName('name'),
      hint: bracedName(meant),
    });
  }
  if (part.includes('*')) {
    return refuse({
      message: `has an asterisk in ${JSON.stringify(part)}`,
      allowed: '{name}, which takes a segment; ** as the last one for anything below; %2A for an asterisk',
    });
  }
  if (part === '') {
    return isLast
      ? accept({ kind: 'literal', text: '' })
      : refuse({ message: 'has an empty segment', allowed: 'one / between segments' });
  }
  return readLiteral(part);
}

function bracedName(name: string): string {
  return `{${name}}: the name alone, as a whole segment; %7B and %7D for braces`;
}

function readLiteral(part: string): Result<Segment, PathFault> {
  const target = /[?#]/.test(part) ? null : readTarget(`/${part}`, maxPathBytes);
  const text =
    target?.ok === true && !target.value.encodedSlash && !target.value.pathParameters
      ? target.value.segments[0]
      : undefined;
  if (text !== undefined) return accept({ kind: 'literal', text });
  const meant = otherParameter.exec(part)?.[1];
  return refuse({
    message: `has ${JSON.stringify(part)}, which no request may have`,
    ...(meant === undefined ? {} : { hint: `{${meant}}, which takes a segment` }),
    allowed:
      'RFC 3986 path characters without ;, percent-encoded only where they have to be, and no dot segments, %2F, %5C, %3B, %3F or %23',
  });
}
