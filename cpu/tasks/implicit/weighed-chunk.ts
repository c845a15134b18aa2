import type { TaskScope } from '../../handler.ts';
import type { ImplicitWeights } from '../../../operators/tasks/tasks.ts';
import {
  CHUNK_RATINGS,
  CHUNK_ROWS,
  type RowChunk,
  WORKSPACE_BYTES as BYTES_AFTER_CHUNKS,
  workspaceOf as afterChunks,
} from '../row-chunks.ts';

/** Weights and targets of a chunk, each followed by the zeros that weighRatings writes. */
const LIST_BYTES = 4 * (CHUNK_RATINGS + 16);
const SHIFT_BYTES = 4 * CHUNK_ROWS;

/** Bytes of scratch left for the workspace. */
export const WORKSPACE_BYTES = BYTES_AFTER_CHUNKS - 2 * LIST_BYTES - SHIFT_BYTES;

export function workspaceOf(scope: TaskScope): number {
  return afterChunks(scope) + 2 * LIST_BYTES + SHIFT_BYTES;
}

/**
 * Computes the targets and weights of a chunk in scratch, and copies `shifts` of its rows there. Returns
 * their addresses.
 */
export function weighedChunk(
  scope: TaskScope,
  { alpha, base }: ImplicitWeights,
  { row, rows, count, values }: RowChunk,
  shifts?: Float32Array,
) {
  const targets = afterChunks(scope);
  const weights = targets + LIST_BYTES;
  const shiftsAt = weights + LIST_BYTES;
  scope.kernels.weighRatings(values, count, alpha, base, targets, weights);
  if (shifts) new Float32Array(scope.memory.buffer, shiftsAt, rows).set(shifts.subarray(row, row + rows));
  return { targets, weights, shiftsAt };
}
