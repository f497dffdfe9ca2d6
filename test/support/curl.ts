/** Real `curl`, for tests whose shell runs it. */
export const curl = 'curl';
