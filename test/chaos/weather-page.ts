/** The tables of `docs/outages.md`, out of the rows that the tests hold a proxy to. */
import { certificateWeather } from './weather-certificates.js';
import { keysWeather } from './weather-keys.js';
import { clockWeather, machineWeather, type MachineWeather } from './weather-machine.js';
import { receiverWeather } from './weather-receiver.js';
import { storeWeather } from './weather-store.js';
import type { Ask, Weather } from './weather.js';

const askNames: Readonly<Record<Ask, string>> = {
  read: 'reads',
  write: 'reserved writes',
  'unknown key': 'unknown key ids',
  public: 'public routes',
};

type Row = Weather<never>;

/** By the name of the part of the page that each stands in. */
export const weatherTables: Readonly<Record<string, string>> = {
  receiver: tableOf(receiverWeather),
  keys: tableOf(keysWeather),
  store: tableOf(storeWeather),
  certificates: tableOf(certificateWeather),
  clock: tableOf(clockWeather),
  machine: [
    '| what fails | callers get | you see | it recovers |',
    '| --- | --- | --- | --- |',
    ...Object.values<MachineWeather>(machineWeather).map(
      ({ name, caller, seen, recovery }) => `| **${name}** | ${caller} | ${seen} | ${recovery} |`,
    ),
  ].join('\n'),
};

/** One line for all failures that look the same. */
function tableOf(rows: readonly Row[]): string {
  const failures = new Map<string, string[]>();
  for (const row of rows) {
    const looks = `${callersGet(row)} | ${seen(row) || 'nothing'}`;
    failures.set(looks, [...(failures.get(looks) ?? []), nameOf(row)]);
  }
  const lines = [...failures].map(([looks, names]) => `| ${names.join('<br>')} | ${looks} |`);
  return ['| what fails | callers get | you see |', '| --- | --- | --- |', ...lines].join('\n');
}

function nameOf({ name, remark }: Row): string {
  return `**${name}**${remark === undefined ? '' : `. ${remark}`}`;
}

function callersGet({ asks }: Row): string {
  const bySaid = new Map<string, string[]>();
  for (const [ask, said] of Object.entries(asks) as [Ask, readonly string[]][]) {
    const words = said.map(marked).join(' or ');
    bySaid.set(words, [...(bySaid.get(words) ?? []), askNames[ask]]);
  }
  return [...bySaid].map(([words, names]) => `${names.join(', ')}: ${words}`).join('; ');
}

/** `503 store-unavailable` with the type as code. */
function marked(said: string): string {
  return said.replace(/[a-z]+-[a-z-]+$/, '`$&`');
}

function seen({ reasons = [], error, grow = [], become = {}, log, ready }: Row): string {
  return [
    ...reasons.map((reason) => `\`${reason}\``),
    ...(error === undefined ? [] : [`\`error=${error}\``]),
    ...grow.map((series) => `\`${series}\` grows`),
    ...Object.entries(become).map(([series, value]) => `\`${series}\` is ${value}`),
    ...(log === undefined ? [] : [`log: “${log}”`]),
    ...(ready === undefined ? [] : [`\`/readyz\`: \`${ready}\``]),
  ].join(', ');
}
