import type { TaskScope } from '../../handler.ts';
import { WINDOW } from './near-keys.ts';

/**
 * True if all numbers are finite: exactly then their float64 sum is finite, since float32 numbers cannot
 * overflow it.
 */
export function areFinite({ memory, scratch, kernels }: TaskScope, values: Float32Array): boolean {
  const window = new Float32Array(memory.buffer, scratch, WINDOW);
  for (let from = 0; from < values.length; from += WINDOW) {
    const some = values.subarray(from, from + WINDOW);
    window.set(some);
    if (!Number.isFinite(kernels.sumOf(scratch, some.length))) return false;
  }
  return true;
}
