/** What owns a resource in a test: `t` of tap, or anything else that runs what it was given when it ends. */
export interface Scope {
  teardown: (close: () => unknown) => unknown;
}
