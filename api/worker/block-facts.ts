import { UsageError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { chunkLimit } from '../../operators/als/rows/row-solver.ts';
import { MAXIMUM_FORMED_RANK } from '../../operators/params/common.ts';
import { blockBytes, factorBytes } from '../../operators/planner/sizes.ts';
import type { RatingBlock } from '../../operators/ratings/ratings.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';

export type Side = 'users' | 'items';

/** Sums over the ratings of all workers, from which the unit of training is computed. */
export interface RatingSums {
  readonly ratings: number;
  readonly squares: number;
}

/** The facts about a block that is built. */
export interface BlockFacts {
  readonly rows: number;
  /** Rows of the other side that occur. */
  readonly columns: number;
  readonly ratings: number;
  readonly sum: number;
  readonly squares: number;
  /** For each block of the other side, the number of this block's rows that it needs. */
  readonly sends?: readonly number[];
  readonly bytes: BlockBytes;
}

interface BuiltBlock {
  readonly block: RatingBlock;
  readonly columns: number;
  /** The number of blocks of the other side, and for each of them the rows that it is sent (see outRows). */
  readonly blocks: number | undefined;
  readonly out: readonly (Uint32Array | undefined)[] | undefined;
}

/** `forms`: true if equations can be formed on the device. */
export function factsOfBlock(
  { block, columns, blocks = Infinity, out }: BuiltBlock,
  params: { readonly rank: number; readonly implicitPrefs: boolean; readonly isHalf: boolean },
  forms: boolean,
): BlockFacts {
  const sizes = { rows: block.rows, columns, ratings: block.ratings };
  const sent = out?.reduce((all, rows) => all + (rows?.length ?? 0), 0) ?? 0;
  // This worker has one of the other side's blocks itself.
  const received = Math.ceil(columns * (1 - 1 / blocks));
  return {
    ...sizes,
    ...sumsOfValues(block.values),
    ...(out ? { sends: out.map((rows) => rows?.length ?? block.rows) } : {}),
    bytes: {
      ...bytesOfBlock({ ...sizes, sent, received }, params),
      ...(forms && { equations: bytesOfEquations(sizes, params) }),
    },
  };
}

/** Σ r and Σ r² of a block's ratings. */
function sumsOfValues(values: Float32Array): Pick<BlockFacts, 'sum' | 'squares'> {
  let [sum, squares] = [0, 0];
  for (let k = 0; k < values.length; k++) {
    sum += values[k];
    squares += values[k] ** 2;
  }
  return { sum, squares };
}

/** True if a worker can form and sum the equations of rows: on a CPU, up to the largest rank that is formed. */
export function formsEquations({ executor }: ExecutionContext, rank: number): boolean {
  return computeDevice(executor).info.kind === 'cpu' && rank <= MAXIMUM_FORMED_RANK;
}

/** Throws UsageError if a worker cannot form equations. */
export function requireEquations(ctx: ExecutionContext, rank: number): void {
  if (formsEquations(ctx, rank)) return;
  throw new UsageError(
    `equations are formed on a CPU and up to rank ${MAXIMUM_FORMED_RANK}, and not here at rank ${rank}`,
    { phase: 'train', advice: 'Exchange rows: send, fixed' },
  );
}

/**
 * Bytes of host memory that a block of rows takes in its worker, on a CPU:
 *
 * - `kept`: from loading to the end: ratings, ids, lists of the rows to send, the rows themselves, frames of them
 *   that were sent and are not collected yet, and their bits where rows are exchanged in float16;
 * - `rows`: the part of `kept` for its rows, which are given up where memory is short (see HeldBlocks);
 * - `loading`: in addition while it is loaded: the chunks from which its ratings are sorted;
 * - `solving`: in addition while it is solved: the rows of the fixed side that it needs, frames of them that are
 *   not collected yet, some of its rows before and after; with implicit data also a copy of its rows for their
 *   Gram matrix.
 */
export interface BlockBytes {
  readonly kept: number;
  readonly rows: number;
  readonly loading: number;
  readonly solving: number;
  /** Absent where equations are not formed: on a GPU, and above rank 512. */
  readonly equations?: EquationBytes;
}

/**
 * Bytes that a block takes in addition where a side is solved from sums of equations:
 *
 * - `kept`: from its first share to the end: its ratings by column
 * - `forming`: while it forms shares: its rows on the device, and some equations with their frame
 * - `summing`: while its own rows are solved so: the sums of their equations, and some of them on the device
 */
type EquationBytes = {
  readonly kept: number;
  readonly forming: number;
  readonly summing: number;
};

/** Bytes of ids and of the tables that find them, for each row of either side. */
const ID_BYTES = 24;

/** Bytes of a rating in the chunks: two numbers and the value. */
export const CHUNK_BYTES = 12;

/** Most bytes of frames that are not collected (measured): 13 of 16 MiB. */
const FRAME_BYTES = 13 * (16 << 20);

/** Most bytes of frames of equations on the device, on their way and not collected: 6 of 16 MiB. */
const EQUATION_FRAMES = 6 * (16 << 20);

/** Most bytes of frames of received rows that are not collected (measured): 4 of 16 MiB. */
const RECEIVED_BYTES = 4 * (16 << 20);

/**
 * `sent`: rows to send, summed over the blocks of the other side; `received`: rows of the fixed side that other
 * workers send. `isHalf`: rows are exchanged in float16; a frame of them is kept in float32, too.
 */
export function bytesOfBlock(
  {
    rows,
    columns,
    ratings,
    sent,
    received,
  }: Record<'rows' | 'columns' | 'ratings' | 'sent' | 'received', number>,
  {
    rank,
    implicitPrefs,
    isHalf,
  }: { readonly rank: number; readonly implicitPrefs: boolean; readonly isHalf: boolean },
): BlockBytes {
  const ownBytes = factorBytes(rows, rank);
  const [frameBytes, forms] = isHalf ? [2 * rank, 3] : [4 * rank, 1];
  const rowBytes = (isHalf ? 6 : 4) * rank * rows + Math.min(FRAME_BYTES, ownBytes);
  return {
    kept: blockBytes(rows, ratings) + ID_BYTES * (rows + columns) + 4 * sent + rowBytes,
    rows: rowBytes,
    loading: CHUNK_BYTES * ratings,
    solving:
      factorBytes(columns, rank) +
      forms * Math.min(RECEIVED_BYTES, frameBytes * received) +
      3 * Math.min(chunkLimit.bytes, ownBytes) +
      (implicitPrefs ? ownBytes : 0),
  };
}

/** Bytes of a block where equations are formed from it, and where it is solved from sums of equations. */
export function bytesOfEquations(
  { rows, columns, ratings }: Record<'rows' | 'columns' | 'ratings', number>,
  { rank }: { readonly rank: number },
): EquationBytes {
  const rowBytes = 4 * equationColumns(rank, false);
  const ownBytes = rowBytes * rows;
  return {
    kept: blockBytes(columns, ratings) + 4 * columns,
    forming: factorBytes(rows, rank) + Math.min(EQUATION_FRAMES, rowBytes * columns),
    summing: ownBytes + 3 * Math.min(chunkLimit.bytes, ownBytes) + Math.min(EQUATION_FRAMES, ownBytes),
  };
}
