import type { TaskScope } from '../../handler.ts';
import { WINDOW } from './near-keys.ts';

/** True where all numbers are finite: exactly then is the float64 sum of float32 numbers finite. */
export function areFinite({ memory, scratch, kernels }: TaskScope, values: Float32Array): boolean {
  const window = new Float32Array(memory.buffer, scratch, WINDOW);
  for (let from = 0; from < values.length; from += WINDOW) {
    const some = values.subarray(from, from + WINDOW);
    window.set(some);
    if (!Number.isFinite(kernels.sumOf(scratch, some.length))) return false;
  }
  return true;
}
