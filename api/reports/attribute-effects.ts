import type { ModelAttributes } from '../../operators/attributes/cold-rows.ts';
import { featureOf } from '../../operators/attributes/encoding.ts';
import type { Model } from '../model.ts';

/** A value of an attribute, and how much it moves predictions. */
export interface AttributeEffect {
  readonly column: string;
  /** Empty for a number, whose effect is that of one standard deviation. */
  readonly value: string;
  /**
   * Root mean square, over the rows of the other side, of the change of a prediction for an item (or user)
   * without ratings that has this value, compared with one that has no value in this column.
   */
  readonly effect: number;
}

/** Rows of the other side that are averaged over. */
const MOST_ROWS = 2000;

/** Features whose effects are computed. */
const MOST_FEATURES = 2000;

/** The attributes of a side that move predictions most, largest first; undefined without attributes. */
export function attributeEffects(
  model: Model,
  side: 'user' | 'item',
  most: number,
): AttributeEffect[] | undefined {
  const attributes = model.attributes?.[side];
  if (attributes === undefined) return undefined;
  const effects = effectsOf(attributes, gramOf(side === 'item' ? model.userArrays : model.itemArrays));
  const order = Uint32Array.from(effects.keys())
    .subarray(1)
    .sort((a, b) => effects[b] - effects[a] || a - b);
  return Array.from(order.subarray(0, most), (feature) => {
    const { column, value } = featureOf(attributes.encoding, feature);
    return { column: column.name, value, effect: effects[feature] };
  });
}

/** The mean of x xᵀ over evenly spaced rows. */
function gramOf({ values, rows, columns }: Model['userArrays']): Float64Array {
  const gram = new Float64Array(columns * columns);
  const taken = Math.min(rows, MOST_ROWS);
  for (let n = 0; n < taken; n++) {
    const at = Math.floor((n * rows) / taken) * columns;
    for (let i = 0; i < columns; i++)
      for (let j = 0; j < columns; j++) gram[i * columns + j] += (values[at + i] * values[at + j]) / taken;
  }
  return gram;
}

/** √(bᵀ G b) of the coefficients b of the features with the largest ‖b‖, 0 of others. */
function effectsOf({ coefficients }: ModelAttributes, gram: Float64Array): Float64Array {
  const { features, columns, values } = coefficients;
  const rowOf = (feature: number) => values.subarray(feature * columns, (feature + 1) * columns);
  const norms = Float64Array.from({ length: features }, (_, feature) => Math.hypot(...rowOf(feature)));
  const largest = Uint32Array.from(norms.keys()).sort((a, b) => norms[b] - norms[a] || a - b);
  const effects = new Float64Array(features);
  for (const feature of largest.subarray(0, MOST_FEATURES)) {
    const own = rowOf(feature);
    let sum = 0;
    for (let i = 0; i < columns; i++)
      for (let j = 0; j < columns; j++) sum += own[i] * gram[i * columns + j] * own[j];
    effects[feature] = Math.sqrt(Math.max(0, sum));
  }
  return effects;
}
