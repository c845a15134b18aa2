/**
 * The loops of loading that process one rating at a time. They are a module of its own, without the code for
 * training, over a memory that each thread has for itself. Addresses are bytes, all numbers have 4 bytes, no
 * state is kept between calls, and indices are not checked.
 */

export { addSums, dampSums, sumApart, sumRows } from './row-sums';
export { countBands, lookUp, numberRows, scatter, startsOf } from './scatter';
export { pairUp, sortByDigit, takeApart } from './sort-band';
