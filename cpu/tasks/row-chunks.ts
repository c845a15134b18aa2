import type { Partition } from '../../engine/partition.ts';
import { CACHED_BYTES } from '../../engine/plan/device-info.ts';
import { type MatrixView, SCRATCH_BYTES, type TaskScope } from '../handler.ts';

/**
 * Most ratings in scratch at a time; longer rows are cut into pieces. It is a multiple of 1,024, the number
 * of ratings that kernels sum in one chain (PART_RATINGS).
 */
export const CHUNK_RATINGS = 65_536;
export const CHUNK_ROWS = 8_192;

/** Number of float32 columns that a handler may have for the rows of a chunk, such as shifts or biases. */
const ROW_COLUMNS = 3;
const ROW_COLUMNS_AT = 2 * 4 * CHUNK_RATINGS + 4 * (CHUNK_ROWS + 16);

/**
 * Bytes of scratch that rowChunks uses: indices, values, offsets, and the row columns. The handler's own
 * workspace follows.
 */
const WORKSPACE_AT = ROW_COLUMNS_AT + ROW_COLUMNS * 4 * CHUNK_ROWS;

/** Bytes of scratch that are left to a handler that reads its block through rowChunks. */
export const WORKSPACE_BYTES = SCRATCH_BYTES - WORKSPACE_AT;

/**
 * Some rows of a rating-block, or a piece of a long row, in WebAssembly memory. `offsets`, `indices` and
 * `values` are addresses in scratch.
 */
export interface RowChunk {
  /** First row, a row of the block. */
  readonly row: number;
  readonly rows: number;
  /** Number of ratings. */
  readonly count: number;
  /**
   * `starts` is true if the chunk has the first rating of its row, `ends` if it has the last. Both are true
   * for whole rows. A long row's pieces are consecutive chunks.
   */
  readonly starts: boolean;
  readonly ends: boolean;
  /** Int32[rows + 1]: for whole rows, positions in the block; for a piece, [0, count]. */
  readonly offsets: number;
  readonly indices: number;
  readonly values: number;
}

export function workspaceOf(scope: TaskScope): number {
  return scope.scratch + WORKSPACE_AT;
}

/** Float32 column `which` of a chunk's rows, in scratch: its address, and a view. */
export function rowColumn(
  scope: TaskScope,
  which: 0 | 1 | 2,
): { readonly address: number; readonly values: Float32Array } {
  const address = scope.scratch + ROW_COLUMNS_AT + which * 4 * CHUNK_ROWS;
  return { address, values: new Float32Array(scope.memory.buffer, address, CHUNK_ROWS) };
}

/** A float64 in scratch, initially 0, to which kernels add their sums. */
export function runningSum(scope: TaskScope): { readonly address: number; readonly view: Float64Array } {
  const address = scope.scratch + 8 * CHUNK_RATINGS + 4 * (CHUNK_ROWS + 8);
  return { address, view: new Float64Array(scope.memory.buffer, address, 1).fill(0) };
}

/**
 * The `far` argument of kernels: 1 if a matrix is larger than the caches, so that its rows are read from
 * memory; 0 if it is in the caches, where prefetching would only cost time.
 */
export function isFar({ rows, stride }: MatrixView): 0 | 1 {
  return rows * stride * 4 >= CACHED_BYTES ? 1 : 0;
}

/** The objective of the row that was solved last in a workspace. */
export function lastObjective(scope: TaskScope, workspace: number, size: number): number {
  return new Float64Array(scope.memory.buffer, scope.kernels.objectiveOf(workspace, size), 1)[0];
}

/**
 * Copies the rows [from, to) of a rating-block into scratch, chunk by chunk. Ends early when the task is
 * cancelled. Rows with at most CHUNK_RATINGS ratings are not cut. `costPerRating` and `costPerRow`, in units
 * of about a nanosecond, estimate the handler's work, and limit a chunk of ordinary rows to some
 * milliseconds.
 */
export function* rowChunks(
  scope: TaskScope,
  block: Partition,
  from: number,
  to: number,
  costPerRating: number,
  costPerRow: number,
): Generator<RowChunk> {
  const { offsets, indices, values } = block.columns as {
    offsets: Int32Array;
    indices: Uint32Array;
    values: Float32Array;
  };
  const at = {
    indices: scope.scratch,
    values: scope.scratch + 4 * CHUNK_RATINGS,
    offsets: scope.scratch + 8 * CHUNK_RATINGS,
  };
  const { buffer } = scope.memory;
  const offsetsView = new Int32Array(buffer, at.offsets, CHUNK_ROWS + 1);
  const indicesView = new Uint32Array(buffer, at.indices, CHUNK_RATINGS);
  const valuesView = new Float32Array(buffer, at.values, CHUNK_RATINGS);
  const copyRatings = (start: number, end: number) => {
    indicesView.set(indices.subarray(start, end));
    valuesView.set(values.subarray(start, end));
  };
  for (let row = from; row < to && !scope.cancelled();) {
    const start = offsets[row];
    let end = offsets[row + 1];
    if (end - start > CHUNK_RATINGS) {
      for (let first = start; first < end && !scope.cancelled(); first += CHUNK_RATINGS) {
        const last = Math.min(first + CHUNK_RATINGS, end);
        copyRatings(first, last);
        offsetsView[0] = 0;
        offsetsView[1] = last - first;
        yield { row, rows: 1, count: last - first, starts: first === start, ends: last === end, ...at };
      }
      row++;
      continue;
    }
    let next = row + 1;
    let budget = CHUNK_COST - costPerRow - (end - start) * costPerRating;
    while (next < to && next - row < CHUNK_ROWS && offsets[next + 1] - start <= CHUNK_RATINGS && budget > 0) {
      budget -= costPerRow + (offsets[next + 1] - end) * costPerRating;
      end = offsets[++next];
    }
    copyRatings(start, end);
    offsetsView.set(offsets.subarray(row, next + 1));
    yield { row, rows: next - row, count: end - start, starts: true, ends: true, ...at };
    row = next;
  }
}

/** In the units of rowChunks' costs. */
const CHUNK_COST = 8e6;
