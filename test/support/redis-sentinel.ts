import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRedis, type RedisServer } from './redis-server.js';
import type { Scope } from './scope.js';
import { until } from './until.js';

export interface SentinelSettings {
  readonly name: string;
  readonly primaryPort: number;
  readonly quorum: number;
  /** How many replicas and other Sentinels each has to know before it is ready. */
  readonly replicas: number;
  readonly count: number;
}

/** Starts Sentinels, and waits until they know the primary, its replicas and each other. */
export async function startSentinels(
  t: Scope,
  { name, primaryPort, quorum, replicas, count }: SentinelSettings,
): Promise<readonly RedisServer[]> {
  const sentinels = await Promise.all(
    Array.from({ length: count }, () =>
      startRedis(t, [], {
        instead: (dir, port) => {
          const path = join(dir, 'sentinel.conf');
          writeFileSync(
            path,
            [
              `port ${String(port)}`,
              'bind 127.0.0.1',
              `dir ${dir}`,
              `sentinel monitor ${name} 127.0.0.1 ${String(primaryPort)} ${String(quorum)}`,
              `sentinel down-after-milliseconds ${name} 1000`,
              `sentinel failover-timeout ${name} 10000`,
              '',
            ].join('\n'),
          );
          return [path, '--sentinel'];
        },
      }),
    ),
  );
  await until('the Sentinels know everybody', async () => {
    const infos = await Promise.all(sentinels.map(({ client }) => client.info('sentinel')));
    return infos.every((info) =>
      info.includes(
        `status=ok,address=127.0.0.1:${String(primaryPort)},slaves=${String(replicas)},sentinels=${String(count)}`,
      ),
    );
  });
  return sentinels;
}
