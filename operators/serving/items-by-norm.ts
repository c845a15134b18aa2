import { fallingOrder } from '../../engine/numbers/falling-order.ts';
import { keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import { type Partition, sharedArray } from '../../engine/partition.ts';
import type { FactorModel } from './factor-model.ts';

/** Bounds are raised by this factor, more than the rounding error of a float32 product of 4,096 terms. */
const ROUNDING = 1 + 3e-4;

/**
 * Sorts the items of a model by descending norm ‖θ_v‖, ties by position. Since x_uᵀθ_v <= ‖x_u‖ ‖θ_v‖, a
 * search for the best items can then stop at the first item for which this bound is below the predictions
 * found so far. `order` has the original position of each item.
 */
export function itemsByNorm(model: FactorModel): {
  readonly model: FactorModel;
  readonly bounds: Partition;
  readonly order: Partition;
} {
  const { rank, items, itemFactors } = model;
  const count = keyCount(items);
  const norms = new Float32Array(count);
  for (let item = 0; item < count; item++) {
    let squares = 0;
    for (let k = item * rank; k < (item + 1) * rank; k++) squares += itemFactors[k] ** 2;
    norms[item] = Math.sqrt(squares);
  }
  const order = fallingOrder(norms);
  const factors = sharedArray(Float32Array, count * rank);
  order.forEach((item, place) =>
    factors.set(itemFactors.subarray(item * rank, (item + 1) * rank), place * rank),
  );
  const values = sharedArray(Float32Array, Math.ceil(count / 8));
  for (let i = 0; i < values.length; i++) values[i] = norms[order[8 * i]] * ROUNDING;
  return {
    model: { ...model, items: takeKeys(items, order), itemFactors: factors },
    bounds: { layout: 'column-bounds', rows: values.length, columns: { values } },
    order: { layout: 'column-order', rows: count, columns: { values: order } },
  };
}
