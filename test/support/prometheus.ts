/** A real Prometheus that scrapes a real Sallyport. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { listen } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

export interface Prometheus {
  /** The series of an expression now; throws what Prometheus says against it. */
  readonly query: (expr: string) => Promise<readonly { readonly metric: Readonly<Record<string, string>> }[]>;
  /** What it kept of examples beside the series of an expression: their labels. */
  readonly exemplars: (expr: string) => Promise<readonly Readonly<Record<string, string>>[]>;
  /** The rules that it loaded, by name, with what their last evaluation said. */
  readonly rules: () => Promise<readonly { readonly name: string; readonly health: string }[]>;
}

/** A case of `promtool test rules`: series over time, and which alerts of a name fire at a moment. */
export interface RuleTest {
  readonly interval: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly ExpectedAlert[];
  }[];
}

export interface ExpectedAlert {
  readonly exp_labels: Readonly<Record<string, string>>;
  readonly exp_annotations: Readonly<Record<string, string>>;
}

/** What Prometheus' own tool for testing rules has against these; empty where nothing. */
export function testRules(t: Scope, rules: readonly string[], tests: readonly RuleTest[]): string {
  const dir = tempDir(t);
  const files = rules.map((text, index) => {
    writeFileSync(join(dir, `rules-${String(index)}.yaml`), text);
    return `rules-${String(index)}.yaml`;
  });
  writeFileSync(
    join(dir, 'tests.yaml'),
    stringify({ rule_files: files, evaluation_interval: '1m', tests }, { aliasDuplicateObjects: false }),
  );
  const { status, stdout, stderr, error } = spawnSync('promtool', ['test', 'rules', join(dir, 'tests.yaml')], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 ** 2,
  });
  if (error !== undefined) throw error;
  return status === 0 ? '' : `${stdout}${stderr}`;
}

interface Answer<T> {
  readonly status: string;
  readonly error?: string;
  readonly data: T;
}

/** What it scrapes, and under which labels. */
export interface Target {
  readonly namespace: string;
  readonly job: string;
  readonly port: number;
}

/** Starts one that scrapes these once a second and evaluates these rules as often; ends with the test. */
export async function startPrometheus(t: Scope, targets: readonly Target[], rulesFile: string): Promise<Prometheus> {
  const dir = tempDir(t);
  const { port: own, close } = await listen(t, createServer());
  await close();
  copyFileSync(rulesFile, join(dir, 'alerts.yaml'));
  writeFileSync(
    join(dir, 'prometheus.yaml'),
    stringify({
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: ['alerts.yaml'],
      scrape_configs: targets.map(({ namespace, job, port }) => ({
        job_name: job,
        static_configs: [{ targets: [`127.0.0.1:${String(port)}`], labels: { namespace } }],
      })),
    }),
  );
  const args = [
    `--config.file=${join(dir, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${String(own)}`,
    '--enable-feature=exemplar-storage',
  ];
  const child = spawn('prometheus', args, { stdio: 'ignore' });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const ask = async <T>(path: string): Promise<T> => {
    const answer = (await (await fetch(`http://127.0.0.1:${String(own)}/api/v1/${path}`)).json()) as Answer<T>;
    if (answer.status !== 'success') throw new Error(answer.error ?? 'no answer');
    return answer.data;
  };
  const query: Prometheus['query'] = async (expr) => {
    const { result } = await ask<{ result: readonly { metric: Readonly<Record<string, string>> }[] }>(
      `query?query=${encodeURIComponent(expr)}`,
    );
    return result;
  };
  const rules: Prometheus['rules'] = async () => {
    const { groups } = await ask<{ groups: readonly { rules: readonly { name: string; health: string }[] }[] }>(
      'rules',
    );
    return groups.flatMap((group) => group.rules);
  };
  const exemplars: Prometheus['exemplars'] = async (expr) => {
    const series = await ask<readonly { exemplars: readonly { labels: Readonly<Record<string, string>> }[] }[]>(
      `query_exemplars?query=${encodeURIComponent(expr)}&start=0&end=${String(Date.now() / 1000)}`,
    );
    return series.flatMap((one) => one.exemplars.map(({ labels }) => labels));
  };
  await until('Prometheus', async () => {
    try {
      return (await query('up == 1')).length === targets.length;
    } catch {
      return false;
    }
  });
  return { query, exemplars, rules };
}
