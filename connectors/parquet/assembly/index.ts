/**
 * Inner loops over Parquet pages. They get addresses as arguments and keep no state between calls. For a
 * damaged page a function returns 0 or traps, since reads cannot leave the WebAssembly memory.
 */

export { readHeader } from './headers';
export { readRuns32, readRuns64 } from './runs';
export { unpackSnappy } from './snappy';
