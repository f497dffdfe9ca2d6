import type { Program } from './program.js';
import { connectRaw } from './raw-client.js';
import { until } from './until.js';

/** Waits until the program takes connections on the port. */
export async function accepting(
  program: Pick<Program, 'isRunning' | 'complaints'>,
  port: number,
  name: string,
): Promise<void> {
  await until(`${name} takes connections`, async () => {
    if (!program.isRunning()) throw new Error(`${name} ended: ${program.complaints()}`);
    const connection = await connectRaw(port).catch(() => null);
    connection?.end();
    return connection !== null;
  });
}
