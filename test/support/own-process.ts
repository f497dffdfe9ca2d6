/**
 * Imported by a test file that cannot share its process with others, for what it measures or changes in it. The runner
 * gives it one of its own.
 */
export {};
