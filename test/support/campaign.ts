/**
 * Imported by a test file that searches for long: a campaign of generated cases, planted faults that each have to be
 * found, every regular expression of the program. `npm run test:unit` leaves it out; everything else runs it.
 */
export {};
