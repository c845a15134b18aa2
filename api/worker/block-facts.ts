import { UsageError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { MAXIMUM_FORMED_RANK } from '../../operators/params/common.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { type BlockBytes, bytesOfBlock, bytesOfEquations } from './block-bytes.ts';

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
