import { sharedArray } from '../partition.ts';

/**
 * Returns the positions of numbers >= 0 in descending order of value, ties by position, in shared memory.
 * This takes one native sort of 64-bit integers without a comparison function, because float32 numbers >= 0
 * have the same order as their bits.
 *
 *     values 2 7 7   ->   1 2 0
 */
export function fallingOrder(values: Float32Array): Uint32Array {
  const keys = new BigUint64Array(values.length);
  const halves = new Uint32Array(keys.buffer);
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < values.length; i++) {
    halves[2 * i] = i;
    halves[2 * i + 1] = ~bits[i];
  }
  keys.sort();
  const order = sharedArray(Uint32Array, values.length);
  for (let i = 0; i < order.length; i++) order[i] = halves[2 * i];
  return order;
}
