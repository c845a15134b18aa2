import { dataSetName } from '../../../engine/partition.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { factorStride } from '../../planner/sizes.ts';
import { type RatingBlock, rowsOfBlock } from '../../ratings/rating-block.ts';
import { type GivenRows, type SolveOutcome, solveRows, type RowsSolving } from './solve-rows.ts';

/** Most bytes of the rows that a CPU solves at a time. Tests lower it. */
export const chunkLimit = { bytes: 32 << 20 };

/** Ranges of rows that are solved one after the other, so that their matrices take little memory. */
export function chunksOf(rows: number, stride: number): { readonly from: number; readonly to: number }[] {
  const most = Math.max(1, Math.floor(chunkLimit.bytes / (4 * stride)));
  return Array.from({ length: Math.ceil(rows / most) }, (_, chunk) => ({
    from: chunk * most,
    to: Math.min(rows, (chunk + 1) * most),
  }));
}

/**
 * Solves the rows of a block that is on the device, and writes them over `own`, the rows before. A CPU solves
 * some of them at a time; the ratings are not copied for that. The rows do not depend on each other, so their
 * bits are the same. `fromZeros`: conjugate gradients start from zeros. After a row without a finite solution
 * the rows of later chunks are unchanged.
 */
export async function solveInPlace(
  own: Float32Array,
  { fromZeros, ...rows }: Omit<GivenRows, 'previous' | 'placed'> & { readonly fromZeros: boolean },
  solving: RowsSolving,
  ctx: ExecutionContext,
): Promise<SolveOutcome> {
  const { kind, strideStep } = solving.device.info;
  const { rank } = solving.rule;
  const chunks = kind === 'cpu' ? chunksOf(rows.block.rows, factorStride(rank, strideStep)) : [];
  const solve = async (
    part: { readonly block: RatingBlock; readonly placed: boolean },
    before: Float32Array,
  ) => {
    const { factors, badRow, objective } = await solveRows(
      { ...rows, ...part, into: before, ...(fromZeros ? {} : { previous: before }) },
      solving,
      ctx,
    );
    if (factors !== before) before.set(factors);
    return { badRow, objective };
  };
  if (chunks.length <= 1) return solve({ block: rows.block, placed: true }, own);
  const name = dataSetName('rows-chunk');
  let objective = 0;
  for (const [partition, { from, to }] of chunks.entries()) {
    const block = rowsOfBlock(rows.block, from, to, { name, partition, version: 0 });
    const solved = await solve({ block, placed: false }, own.subarray(from * rank, to * rank));
    objective += solved.objective;
    if (solved.badRow >= 0) return { badRow: from + solved.badRow, objective };
  }
  return { badRow: -1, objective };
}
