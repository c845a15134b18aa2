import type { RandomStream } from './random-stream.ts';

/** 0..count-1 in random order (Fisher-Yates); id = permutation[rank] hides a rank in the id. */
export function permutation(count: number, random: RandomStream): Int32Array {
  const order = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const j = Math.floor(random.nextUniform() * (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}
