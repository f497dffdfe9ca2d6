/** Whether a promise is settled once everything that is due now has run. */
export async function settled(promise: Promise<unknown> | undefined): Promise<boolean> {
  let isSettled = false;
  const note = (): void => {
    isSettled = true;
  };
  promise?.then(note, note);
  await new Promise((resolve) => setImmediate(resolve));
  return isSettled;
}
