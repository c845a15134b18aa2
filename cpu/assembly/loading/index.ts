/**
 * The loops of loading that process one rating at a time. They are compiled to a small module of their own,
 * without the code for training, and each thread runs it over a memory of its own. Addresses are bytes, all
 * numbers have 4 bytes, no state is kept between calls, and indices are not checked.
 */

export { addSums, dampSums, sumApart, sumRows } from './row-sums';
export { countBands, lookUp, numberRows, scatter, startsOf } from './scatter';
export { pairUp, sortByDigit, takeApart } from './sort-band';
