/**
 * What the log may say of an unexpected error: its kind and where it was thrown, not its text, which may hold anything.
 */
export function describeBug(error: unknown): { readonly error: string; readonly at: string } {
  if (!(error instanceof Error)) return { error: typeof error, at: '' };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    error: error.name,
    at: frames
      .slice(0, maxFrames)
      .map((line) => line.trim())
      .join(' < '),
  };
}

const maxFrames = 6;
