/**
 * The loops of loading over ratings and over rows. They are compiled to a small module of their own, without
 * the code for training, and each thread runs it over a memory of its own. Addresses are bytes; indices, keys
 * and ratings have 4 bytes, sums and totals are float64. No state is kept between calls, and indices are not
 * checked.
 */

export { addSums, dampSums, sumApart, sumRows } from './row-sums';
export { countBands, lookUp, numberRows, scatter, startsOf } from './scatter';
export { pairUp, sortByDigit, takeApart } from './sort-band';
