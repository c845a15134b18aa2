/**
 * The loops of loading that go a rating at a time. A module of its own, without what only training needs,
 * over a memory that each thread has for itself. Addresses are bytes, all numbers have 4 bytes, nothing is
 * kept between calls, and numbers that are places are not checked.
 *
 */

export { addSums, dampSums, sumApart, sumRows } from './row-sums';
export { countBands, lookUp, numberRows, scatter, startsOf } from './scatter';
export { pairUp, sortByDigit, takeApart } from './sort-band';
