import { CACHED_BYTES } from '../../engine/plan/device-info.ts';
import type { ImplicitWeights } from '../../operators/tasks/tasks.ts';
import { RowProblem } from '../generated/structs.ts';
import { blockOf, type MatrixView, SCRATCH_BYTES, type TaskScope, valuesOf } from '../handler.ts';
import { Struct } from '../scratch.ts';

/**
 * Most ratings in scratch at a time; longer rows are cut into pieces. It is a multiple of 1,024, the number
 * of ratings that kernels sum in one chain (PART_RATINGS).
 */
export const CHUNK_RATINGS = 65_536;
export const CHUNK_ROWS = 8_160;

/** Number of float32 columns that a handler may have for the rows of a chunk, such as shifts or biases. */
const ROW_COLUMNS = 3;
const OFFSETS_AT = 2 * 4 * CHUNK_RATINGS;
const ROW_COLUMNS_AT = OFFSETS_AT + 4 * (CHUNK_ROWS + 16);
const PROBLEM_AT = ROW_COLUMNS_AT + ROW_COLUMNS * 4 * CHUNK_ROWS;

/**
 * Bytes of scratch for a chunk: indices, values, offsets, the row columns, and a RowProblem. Weights and
 * targets follow if ratings are weighed, then the handler's own workspace. The size of the workspace decides
 * which ratings have panels, and so the bits of models: changes elsewhere must keep it.
 */
const CHUNK_BYTES = PROBLEM_AT + 512;

/** Targets and weights of a chunk, each followed by the zeros that weighRatings writes. */
const WEIGHED_BYTES = 4 * (CHUNK_RATINGS + 16);

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

/** The scratch that is left to a handler. `weighed`: its ratings are weighed (weighedRatings). */
export function workspaceOf(
  scope: TaskScope,
  weighed = false,
): { readonly address: number; readonly bytes: number } {
  const used = CHUNK_BYTES + (weighed ? 2 * WEIGHED_BYTES + 4 * 8_192 : 0);
  return { address: scope.scratch + used, bytes: SCRATCH_BYTES - used };
}

/** Float32 column `which` of a chunk's rows, in scratch: its address, and a view. */
export function rowColumn(
  scope: TaskScope,
  which: 0 | 1 | 2,
): { readonly address: number; readonly values: Float32Array } {
  const address = scope.scratch + ROW_COLUMNS_AT + which * 4 * CHUNK_ROWS;
  return { address, values: new Float32Array(scope.memory.buffer, address, CHUNK_ROWS) };
}

/**
 * The RowProblem of a handler, with the workspace, the rank, and vectors of as many bytes as rows of `matrix`.
 * The other fields are 0.
 */
export function rowProblem(
  scope: TaskScope<{ readonly rank: number }>,
  { stride }: MatrixView,
  weighed = false,
): Struct<typeof RowProblem> {
  const { address, bytes } = workspaceOf(scope, weighed);
  return new Struct(scope.memory, scope.scratch + PROBLEM_AT, RowProblem).clear().set({
    size: 4 * stride,
    rank: scope.params.rank,
    workspace: address,
    workspaceBytes: bytes,
  });
}

/** The priors of a task's rows: the address of a row's prior, 0 without, and the priors of biases. */
export interface Priors {
  of(row: number): number;
  readonly biases: Float32Array | undefined;
}

export function priorsOf(scope: TaskScope): Priors {
  const biases = valuesOf(scope, 'priorBias');
  if (!scope.hasMatrix('prior')) return { of: () => 0, biases };
  const { pointer, stride } = scope.matrix('prior');
  return { of: (row) => pointer + row * stride * 4, biases };
}

/** The Gram matrix's address and the shifts of implicit data; 0 and undefined for explicit data. */
export function gramAndShifts(scope: TaskScope) {
  return {
    gram: scope.hasMatrix('gram') ? scope.matrix('gram').pointer : 0,
    shifts: valuesOf(scope, 'shifts'),
  };
}

/**
 * The `far` field of problems: 1 if a matrix is larger than the caches, so that its rows are read from
 * memory; 0 if it is in the caches, where prefetching would only cost time.
 */
export function isFar({ rows, stride }: MatrixView): 0 | 1 {
  return rows * stride * 4 >= CACHED_BYTES ? 1 : 0;
}

/** Addresses of a chunk's values t and weights w, for kernels; `weights` is 0 where all ratings weigh 1. */
export interface ChunkRatings {
  readonly values: number;
  readonly weights: number;
}

/** Computes the targets and weights of a chunk of implicit data in scratch. */
export function weighedRatings(
  scope: TaskScope,
  { alpha, base }: ImplicitWeights,
  { count, values }: RowChunk,
): ChunkRatings {
  const targets = scope.scratch + CHUNK_BYTES;
  const weights = targets + WEIGHED_BYTES;
  scope.kernels.weighRatings(values, count, alpha, base, targets, weights);
  return { values: targets, weights };
}

/**
 * Returns the function that makes the values and weights of a chunk: of implicit data by weighedRatings; of
 * explicit data in place, where μ and the fixed side's biases are subtracted: r_uv becomes r_uv - μ - γ_v.
 * With `onlyWeights` explicit values may stay as they are.
 */
export function ratingsOf(
  scope: TaskScope,
  { mean = 0, implicit }: { readonly mean?: number; readonly implicit?: ImplicitWeights },
): (chunk: RowChunk, onlyWeights?: boolean) => ChunkRatings {
  if (implicit) return (chunk) => weighedRatings(scope, implicit, chunk);
  const fixed = valuesOf(scope, 'fixedBias');
  const { buffer } = scope.memory;
  return (chunk, onlyWeights = false) => {
    if (fixed && !onlyWeights) {
      const indices = new Uint32Array(buffer, chunk.indices, chunk.count);
      const values = new Float32Array(buffer, chunk.values, chunk.count);
      for (let k = 0; k < values.length; k++) values[k] -= mean + fixed[indices[k]];
    }
    return { values: chunk.values, weights: 0 };
  };
}

/**
 * Splits a chunk into pieces with ratings of one row each. `at`: the byte offset of a piece's first rating in
 * the chunk's lists. Rows without ratings are left out.
 */
export function* rowsOfChunk(
  { row, rows, count, starts, ends }: RowChunk,
  offsets: Int32Array,
): Generator<{ readonly row: number; readonly at: number; readonly n: number }> {
  if (!starts || !ends) {
    yield { row, at: 0, n: count };
    return;
  }
  for (let r = row; r < row + rows; r++)
    if (offsets[r + 1] > offsets[r])
      yield { row: r, at: 4 * (offsets[r] - offsets[row]), n: offsets[r + 1] - offsets[r] };
}

/** In the units of rowChunks' costs. */
const CHUNK_COST = 8e6;

/**
 * Copies the rows [from, to) of a block of the task into scratch, chunk by chunk. Ends early when the task is
 * cancelled. Rows with at most CHUNK_RATINGS ratings are not cut. `costPerRating` and `costPerRow`, in units
 * of about a nanosecond, estimate the handler's work, and limit a chunk of ordinary rows to some
 * milliseconds.
 */
export function* rowChunks(
  scope: TaskScope,
  from: number,
  to: number,
  costPerRating: number,
  costPerRow: number,
  name = 'block',
): Generator<RowChunk> {
  const { offsets, indices, values } = blockOf(scope, name);
  const at = {
    indices: scope.scratch,
    values: scope.scratch + 4 * CHUNK_RATINGS,
    offsets: scope.scratch + OFFSETS_AT,
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
