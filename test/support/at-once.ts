/** Does something so many times, so many of them at once. */
export async function timesAtOnce(count: number, atOnce: number, once: () => Promise<void>): Promise<void> {
  let left = count;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await once();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}
