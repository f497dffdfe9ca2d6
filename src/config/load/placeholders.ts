import { accept, refuse, type Result } from '../../lib/result.js';

/** Where `${env:NAME}` and `${file:PATH}` get their text from. */
export interface PlaceholderSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file by the path that the config has, which may be relative. */
  readonly readFile: (path: string) => Result<string, string>;
}

/** A text with its placeholders replaced. */
interface Substitution {
  readonly text: string;
  /** Whether there was any placeholder. */
  readonly substituted: boolean;
  /** Whether the text was one placeholder and nothing else. */
  readonly whole: boolean;
}

/** What is wrong with one placeholder; never holds what it stands for. */
interface PlaceholderFault {
  readonly message: string;
  readonly allowed: string;
}

const anyPlaceholder = /\$?\$\{([^}]*)\}?/g;
/** Characters: no value of a config is longer, and a wrong path may lead to a log. */
const maxValueLength = 65_536;

const secretForms = '${file:PATH}, with a file that others may not read';

const allowedForms = '${env:NAME}, ${file:PATH}; $${ where ${ itself is meant';

/** The placeholders of a text, in order: what they name, not what they stand for. */
export function placeholdersIn(text: string): readonly { readonly kind: 'env' | 'file'; readonly name: string }[] {
  return [...text.matchAll(anyPlaceholder)].flatMap(([found, reference = '']) => {
    const named = found.startsWith('$$') || !found.endsWith('}') ? null : readReference(reference);
    return named === null ? [] : [named];
  });
}

/**
 * Replaces the placeholders of a string: `${env:NAME}`, `${file:PATH}` (the file's last newline is left out), and `$${`
 * for a `${` that is none. What they stand for is text and nothing else: it is never read as YAML, nor for
 * placeholders. A refusal has every fault of the string.
 *
 * @param isSecret whether a variable of this name would hold a secret here: then the environment is not proposed.
 */
export function substitute(
  text: string,
  sources: PlaceholderSources,
  isSecret: (variable: string) => boolean = () => false,
): Result<Substitution, readonly PlaceholderFault[]> {
  if (!text.includes('${')) return accept({ text, substituted: false, whole: false });
  const faults: PlaceholderFault[] = [];
  let count = 0;
  let whole = false;
  const replaced = text.replace(anyPlaceholder, (found, reference: string) => {
    if (found.startsWith('$$')) return found.slice(1);
    count += 1;
    whole = found === text;
    const value = found.endsWith('}')
      ? resolve(found, reference, sources, isSecret)
      : refuse(notAPlaceholder(found, isSecret));
    if (value.ok && value.value.length <= maxValueLength) return value.value;
    faults.push(value.ok ? { message: `${found} stands for too long a text`, allowed: 'at most 64 KiB' } : value.error);
    return '';
  });
  if (faults.length > 0) return refuse(faults);
  return accept({ text: replaced, substituted: count > 0, whole });
}

function readReference(reference: string): { readonly kind: 'env' | 'file'; readonly name: string } | null {
  const [, kind, name] = /^(env|file):(.+)$/s.exec(reference) ?? [];
  return name === undefined ? null : { kind: kind === 'env' ? 'env' : 'file', name };
}

type IsSecret = (variable: string) => boolean;

function resolve(
  found: string,
  reference: string,
  { env, readFile }: PlaceholderSources,
  isSecret: IsSecret,
): Result<string, PlaceholderFault> {
  const named = readReference(reference);
  if (named === null) return refuse(notAPlaceholder(found, isSecret));
  const { kind, name } = named;
  if (kind === 'env') {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      return refuse({ message: `${found} does not name an environment variable`, allowed: 'letters, digits and _' });
    }
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value !== undefined) return accept(value);
    return refuse({
      message: `${found} is not set in the environment`,
      allowed: isSecret(name) ? secretForms : 'a variable that is set',
    });
  }
  const content = readFile(name);
  if (!content.ok) {
    return refuse({ message: `${found} cannot be read: ${content.error}`, allowed: 'a file that can be read' });
  }
  return accept(content.value.replace(/\r?\n$/, ''));
}

function notAPlaceholder(found: string, isSecret: IsSecret): PlaceholderFault {
  const variable = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/.exec(found)?.[1];
  if (isSecret(variable ?? '')) return { message: `${JSON.stringify(found)} is no placeholder`, allowed: secretForms };
  const hint = variable === undefined ? '' : `, did you mean \${env:${variable}}?`;
  return { message: `${JSON.stringify(found)} is no placeholder${hint}`, allowed: allowedForms };
}
