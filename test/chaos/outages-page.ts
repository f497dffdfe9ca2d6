/** The tables of `docs/outages.md`, out of the rows that the tests hold a proxy to. */
import { certificateOutages } from './outages-certificates.js';
import { keysOutages } from './outages-keys.js';
import { clockOutages, machineOutages, type MachineOutage } from './outages-machine.js';
import { receiverOutages } from './outages-receiver.js';
import { storeOutages } from './outages-store.js';
import type { Ask, Outage } from './outages.js';

const askNames: Readonly<Record<Ask, string>> = {
  read: 'reads',
  write: 'reserved writes',
  'unknown key': 'unknown key ids',
  public: 'public routes',
};

type Row = Outage<never>;

/** By the name of the part of the page that each stands in. */
export const outageTables: Readonly<Record<string, string>> = {
  receiver: tableOf(receiverOutages),
  keys: tableOf(keysOutages),
  store: tableOf(storeOutages),
  certificates: tableOf(certificateOutages),
  clock: tableOf(clockOutages),
  machine: [
    '| what fails | callers get | you see | it recovers |',
    '| --- | --- | --- | --- |',
    ...Object.values<MachineOutage>(machineOutages).map(
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
  const byAnswer = new Map<string, string[]>();
  for (const [ask, answers] of Object.entries(asks) as [Ask, readonly string[]][]) {
    const words = answers.map(marked).join(' or ');
    byAnswer.set(words, [...(byAnswer.get(words) ?? []), askNames[ask]]);
  }
  return [...byAnswer].map(([words, names]) => `${names.join(', ')}: ${words}`).join('; ');
}

/** `503 store-unavailable` with the type as code. */
function marked(answers: string): string {
  return answers.replace(/[a-z]+-[a-z-]+$/, '`$&`');
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
