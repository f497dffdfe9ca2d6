/** Paths as Fastify's router writes them (find-my-way), and which targets they are. */
import { leaveEscapes, type RequestTarget } from '../decision/http/request-target.js';

/** Text as it stands, a parameter, or `*`, which takes whatever follows. */
type Part = { readonly text: string } | { readonly parameter: string };

/** One way to write a path: a last parameter with `?` has two. */
type Variant = readonly Part[];

/** A path of a route of the application. */
export interface RoutePattern {
  readonly url: string;
  readonly variants: readonly Variant[];
}

/** Stands for what a parameter takes: no target and no route has it. */
const anySegment = '\0';

const wildcard = '*';

/** Reads a path of the router. */
export function readPattern(url: string): RoutePattern {
  const optional = /\/:[^/()]*\?$/.exec(url);
  if (optional === null) return { url, variants: [readVariant(url)] };
  const short = url.slice(0, optional.index);
  return { url, variants: [readVariant(url.slice(0, -1)), readVariant(short === '' ? '/' : short)] };
}

function readVariant(url: string): Variant {
  const parts: Part[] = [];
  let text = '';
  const endText = (): void => {
    if (text !== '') parts.push({ text });
    text = '';
  };
  for (let at = 0; at < url.length;) {
    const rest = url.slice(at);
    if (rest.startsWith('::')) {
      text += ':';
      at += 2;
    } else if (rest.startsWith(':')) {
      endText();
      const name = /^:([^/(.-]*)/.exec(rest)?.[1] ?? '';
      parts.push({ parameter: name });
      at += 1 + name.length;
      if (url[at] === '(') at = closingParenthesis(url, at) + 1;
    } else if (rest === wildcard) {
      endText();
      parts.push({ parameter: wildcard });
      at += 1;
    } else {
      text += url[at] ?? '';
      at += 1;
    }
  }
  endText();
  return parts;
}

/** Of a parameter with an expression; the end of the text where it is missing, which the router refuses. */
function closingParenthesis(url: string, open: number): number {
  let depth = 0;
  for (let at = open; at < url.length; at++) {
    if (url[at] === '\\') at += 1;
    else if (url[at] === '(') depth += 1;
    else if (url[at] === ')') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return url.length;
}

/** Segments of a target that the route takes, one list for each way to write it. */
export function examplesOf({ variants }: RoutePattern): readonly (readonly string[])[] {
  return variants.map((variant) =>
    segmentsOf(variant).flatMap((segment) =>
      segment === wildcard ? [anySegment, anySegment] : [typeof segment === 'string' ? anySegment : segment.text],
    ),
  );
}

/** The same paths as a policy writes them. What has a parameter in a segment takes the whole segment. */
export function policyPathsOf({ variants }: RoutePattern): readonly string[] {
  return variants.map((variant) =>
    segmentsOf(variant)
      .map((segment, index) =>
        segment === wildcard
          ? '/**'
          : typeof segment === 'string'
            ? `/{p${String(index)}}`
            : `/${encoded(segment.text)}`,
      )
      .join(''),
  );
}

/** A segment as text, `:` for one with a parameter in it, `*` for anything from here on. */
function segmentsOf(variant: Variant): readonly ({ readonly text: string } | ':' | '*')[] {
  const marked = variant.map((part) =>
    'text' in part ? part.text : part.parameter === wildcard ? marks.rest : marks.parameter,
  );
  const pieces = marked.join('').replace(/^\//, '').split('/');
  return pieces.map((piece) => {
    if (piece.includes(marks.rest)) return '*';
    return piece.includes(marks.parameter) ? ':' : { text: piece };
  });
}

/** What no path holds. */
const marks = { parameter: '\u0001', rest: '\u0002' } as const;

/** Percent-encodes what a policy's path may not hold as it stands. */
function encoded(text: string): string {
  return Array.from(text, (character) =>
    /[A-Za-z0-9\-._~!$&'()+,=:@]/.test(character) ? character : encodeURIComponent(character).replace('*', '%2A'),
  ).join('');
}

/**
 * Whether the router read a target as it was judged: put together again from the route and what its parameters took, it
 * is the path that was judged, to the letter. So no setting of the router (case, slashes, semicolons) makes it serve
 * another route than the one that the policy was chosen for.
 */
export function isReadAlike(
  { variants }: RoutePattern,
  parameters: Readonly<Record<string, string | undefined>>,
  { segments, encodedSlash }: Pick<RequestTarget, 'segments' | 'encodedSlash'>,
): boolean {
  const path = `/${segments.join('/')}`;
  const judged = encodedSlash ? path.replace(/%2f/gi, '/') : path;
  return variants.some((variant) => {
    let read = '';
    for (const part of variant) {
      const text = 'text' in part ? part.text : parameters[part.parameter];
      if (text === undefined) return false;
      read += text;
    }
    return read === judged;
  });
}

/**
 * The segments by which the router looks for literals, where they are others than every router's (`literalSegments` of
 * the target): it leaves `%25` as well. `null` where they are the same.
 */
export function literalsOfRouter({ path }: Pick<RequestTarget, 'path'>): readonly string[] | null {
  return leaveEscapes(path, /%25/);
}
