/** The version of this build, with `-dev` where it is no release; a test holds it equal to `package.json`. */
export const version = '0.2.0-dev';

/** The commit it was built from, with `-dirty` where more was in it; the build writes it in, where it can tell. */
export const revision: string = 'unknown';

/** The Node.js that runs it. */
export const node = process.versions.node;

/** All of it in one line. */
export const versionLine = `sallyport ${version} (${revision === 'unknown' ? 'commit unknown' : revision}, Node ${process.version})`;
