/** Stands in for `node:path` in a page, where paths are names of files that are not read. */
export function resolve(folder: string, path: string): string {
  const steps: string[] = [];
  for (const step of (path.startsWith('/') ? path : `${folder}/${path}`).split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return `/${steps.join('/')}`;
}
