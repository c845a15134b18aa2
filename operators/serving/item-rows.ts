import { sharedArray } from '../../engine/partition.ts';
import type { FactorModel } from './factor-model.ts';

/** The factors of a model's items, for work that needs a few rows of them. */
export interface ItemRows {
  /** Numbers of a row, with biases. */
  readonly rank: number;
  readonly items: number;
  /** `count` numbers of the rows at these positions, in their order, from number `first` of a row on. */
  read(
    positions: Uint32Array,
    columns: { readonly first: number; readonly count: number },
    signal: AbortSignal,
  ): Promise<Float32Array>;
}

/** The rows of factors in memory. */
export function rowsInMemory({ itemFactors, rank }: Pick<FactorModel, 'rank' | 'itemFactors'>): ItemRows {
  return {
    rank,
    items: itemFactors.length / rank,
    read: async (positions, columns) => takeRows(itemFactors, rank, positions, columns),
  };
}

/** Copies `count` numbers of rows of `width` numbers: see ItemRows. */
export function takeRows(
  values: Float32Array,
  width: number,
  positions: Uint32Array,
  { first, count }: { readonly first: number; readonly count: number },
): Float32Array {
  const taken = sharedArray(Float32Array, positions.length * count);
  positions.forEach((position, at) => {
    const from = position * width + first;
    for (let k = 0; k < count; k++) taken[at * count + k] = values[from + k];
  });
  return taken;
}
