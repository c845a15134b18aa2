import { gaussianPair, mix32, randomU32 } from '../../engine/random.ts';
import type { ScopeOf, TaskHandler } from '../handler.ts';

/** Rows between two looks at the cancel flag. */
const CHUNK_ROWS = 4_096;

/** See `initialize` of KernelTasks. Element k of a row is a function of (seed, the row's key hash, k). */
export const initialize: TaskHandler<'initialize'> = (scope) => {
  const { from, to, rank, seed, nonnegative, norm = 1, shift = 0, first = 0, oneAt } = scope.params;
  const { low, high } = scope.partition('keys').columns as { low: Uint32Array; high: Uint32Array };
  const { factors, stride } = outputOf(scope, to);
  const row = new Float64Array(rank + (rank & 1));
  // Two words of the seed: for each seed the 64-bit key of a row is another one, and rows stay distinct.
  const [seedLow, seedHigh] = [mix32(seed, 1), mix32(seed, 2)];
  for (let u = from; u < to && !((u - from) % CHUNK_ROWS === 0 && scope.cancelled()); u++) {
    const [keyLow, keyHigh] = [low[u] ^ seedLow, high[u] ^ seedHigh];
    let squares = 0;
    for (let k = 0; k < rank; k += 2) {
      gaussianPair(randomU32(keyLow, keyHigh, k), randomU32(keyLow, keyHigh, k + 1), row, k);
      squares += row[k] ** 2 + (k + 1 < rank ? row[k + 1] ** 2 : 0);
    }
    const scale = norm / Math.sqrt(squares);
    const at = u * stride;
    const start = at + first;
    factors.fill(0, at, at + stride);
    for (let k = 0; k < rank; k++) factors[start + k] = (nonnegative ? Math.abs(row[k]) : row[k]) * scale + shift;
    if (oneAt !== undefined) factors[at + oneAt] = 1;
  }
  return { rows: to - from };
};

/** A matrix of the device, or rows in host memory. */
function outputOf(scope: ScopeOf<'initialize'>, to: number): { readonly factors: Float32Array; readonly stride: number } {
  if (!scope.hasMatrix('factors')) {
    const { rows, columns: { values } } = scope.partition('factors');
    return { factors: values as Float32Array, stride: values.length / Math.max(1, rows) };
  }
  const { pointer, stride } = scope.matrix('factors');
  return { factors: new Float32Array(scope.memory.buffer, pointer, to * stride), stride };
}
