/**
 * The inner loops of Parquet's pages. Addresses come in as arguments, nothing is kept between calls, and a
 * damaged page makes a function return 0 or trap: reads stay inside the memory.
 *
 */

export { readHeader } from './headers';
export { readRuns32, readRuns64 } from './runs';
export { unpackSnappy } from './snappy';
