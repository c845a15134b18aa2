import { mix32 } from '../../engine/random.ts';
import type { TaskHandler, TaskScope } from '../handler.ts';

/** Bytes of scratch for the keys and rows of a chunk. */
const CHUNK_BYTES = 4 << 20;

/** Bytes of the kernel's work for each element of a row. */
const WORK_BYTES = 12;

/** See `initialize` of KernelTasks. Element k of a row depends only on (seed, the row's key hash, k). */
export const initialize: TaskHandler<'initialize'> = (scope) => {
  const { from, to, rank, seed, nonnegative, norm = 1, shift = 0, first = 0, oneAt = -1 } = scope.params;
  const { low, high } = scope.partition('keys').columns as { low: Uint32Array; high: Uint32Array };
  const { pointer, host, stride } = targetOf(scope);
  const { buffer } = scope.memory;
  const lowAt = scope.scratch + WORK_BYTES * (rank + 4 - (rank % 4));
  const chunk = Math.floor(CHUNK_BYTES / (8 + 4 * stride));
  const [highAt, rowsAt] = [lowAt + 4 * chunk, lowAt + 8 * chunk];
  // Two words of the seed are mixed into the 64-bit keys. So another seed gives other numbers, and different
  // rows still have different keys.
  const [seedLow, seedHigh] = [mix32(seed, 1), mix32(seed, 2)];
  for (let row = from; row < to && !scope.cancelled(); row += chunk) {
    const end = Math.min(row + chunk, to);
    new Uint32Array(buffer, lowAt, chunk).set(low.subarray(row, end));
    new Uint32Array(buffer, highAt, chunk).set(high.subarray(row, end));
    const output = pointer === undefined ? rowsAt : pointer + 4 * stride * row;
    scope.kernels.drawRows(
      lowAt,
      highAt,
      end - row,
      seedLow,
      seedHigh,
      rank,
      nonnegative ? 1 : 0,
      norm,
      shift,
      output,
      stride,
      first,
      oneAt,
      scope.scratch,
    );
    host?.set(new Float32Array(buffer, rowsAt, (end - row) * stride), row * stride);
  }
  return { rows: to - from };
};

/** The rows to write: a matrix of the device, or host memory. */
function targetOf(scope: TaskScope): {
  readonly pointer?: number;
  readonly host?: Float32Array;
  readonly stride: number;
} {
  if (scope.hasMatrix('factors')) return scope.matrix('factors');
  const { rows, columns } = scope.partition('factors');
  const host = columns.values as Float32Array;
  return { host, stride: host.length / Math.max(1, rows) };
}
