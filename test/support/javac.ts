/** A Java development kit. */
export const javac = 'javac';
export const java = 'java';
