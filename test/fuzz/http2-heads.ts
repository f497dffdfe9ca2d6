/** Heads over HTTP/2, byte for byte: sound ones, and such as no client sends. */
import { isForbidden } from '../support/http2-saying.js';
import { once, pick, type Draw } from './draw.js';
import { someHead } from './heads.js';
import type { Tokens } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Head } from './model.js';

const smuggled = '\r\nX-Auth-Subject: root\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

const ofConnection = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'http2-settings'];

/** Names and values as they are sent, pseudo-header fields first unless that is what is wrong. */
export function someHttp2Head(draw: Draw, tokens: Tokens): readonly Field[] {
  const { method, target, fields } = someHead(draw, tokens);
  const said = fields
    .map(([name, value]): Field => [once(draw, 60) ? name : name.toLowerCase(), value])
    .filter(([name]) => once(draw, 10) || !ofConnection.includes(name));
  const host = said.findIndex(([name]) => name === 'host');
  const authority = host < 0 || once(draw, 12) ? [] : [said[host]?.[1] ?? ''];
  if (authority.length > 0 && !once(draw, 12)) said.splice(host, 1);
  const list: Field[] = [
    [':method', method],
    [':scheme', once(draw, 20) ? pick(draw, ['https', 'ftp', '', smuggled]) : 'http'],
    [':path', target],
    ...authority.map((value): Field => [':authority', value]),
    ...said,
  ];
  if (once(draw, 6)) list.splice(draw.below(list.length), 1);
  if (once(draw, 6)) list.splice(draw.below(list.length + 1), 0, pick(draw, list));
  if (once(draw, 6)) {
    list.splice(draw.below(list.length + 1), 0, [pick(draw, [':protocol', ':x', 'te', 'cookie']), 'a=b']);
  }
  if (once(draw, 4)) {
    const at = draw.below(list.length);
    const [name = '', value = ''] = list[at] ?? [];
    const dirt = pick(draw, [smuggled, '\r', '\n', '\0', ' ', '\x7f', '\xe9', '/../']);
    list[at] = once(draw, 3) ? [`${name}${dirt}`, value] : [name, `${value}${dirt}`];
  }
  // What the wire carries of them: one byte for each character.
  return list.map(([name, value]) => [name, Buffer.from(value, 'latin1').toString('latin1')]);
}

/**
 * The head that RFC 9113 §8.3.1 makes of them, for the model; `null` where it is malformed. Fields that nghttp2 leaves
 * out are left out.
 */
export function headOf(list: readonly Field[]): Head | null {
  const pseudo = new Map<string, string>();
  const fields: Field[] = [];
  for (const [name, value] of list) {
    if (name.startsWith(':')) {
      if (pseudo.has(name) || fields.length > 0) return null;
      pseudo.set(name, value);
    } else if (isLeftOut(name, value)) continue;
    else if (/[A-Z]/.test(name) || ofConnection.includes(name) || (name === 'te' && value !== 'trailers')) return null;
    else fields.push([name, value]);
  }
  const [method, target, authority] = [':method', ':path', ':authority'].map((name) => pseudo.get(name));
  const names = [':method', ':scheme', ':path', ':authority'];
  if (method === undefined || target === undefined || [...pseudo.keys()].some((name) => !names.includes(name))) {
    return null;
  }
  if (!['http', 'https'].includes(pseudo.get(':scheme') ?? '')) return null;
  const hosts = fields.filter(([name]) => name === 'host').map(([, value]) => value);
  if (
    hosts.length > 1 ||
    (authority !== undefined && hosts.some((host) => host.toLowerCase() !== authority.toLowerCase()))
  ) {
    return null;
  }
  const cookies = fields.filter(([name]) => name === 'cookie').map(([, value]) => value);
  const rest = fields.filter(([name]) => name !== 'host' && name !== 'cookie');
  return {
    method,
    target,
    version: '1.1',
    fields: [
      ...[authority ?? hosts[0]].flatMap((host): Field[] => (host === undefined ? [] : [['host', host]])),
      ...rest,
      ...(cookies.length === 0 ? [] : [['cookie', cookies.join('; ')] as const]),
    ],
  };
}

/** nghttp2 drops such a field, and reads on; a name in upper case it does not forgive. */
function isLeftOut(name: string, value: string): boolean {
  if (name === 'host' && /[^A-Za-z0-9._~%!$&'()*+,;=:@[\]-]/.test(value)) return true;
  return !/[A-Z]/.test(name) && (isForbidden(name, value) || /^[ \t]|[ \t]$/.test(value));
}
