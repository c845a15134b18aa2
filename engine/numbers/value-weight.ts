/** The formulas of `ValueWeight`. */
export type WeightForm = 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/**
 * A formula for the weight of a value r in a sparse table, with its constants. The weight has the sign of r.
 *
 *     spark   |r|
 *     raw     |r| · scale
 *     binary  1
 *     log     (1 + ln(1 + |r| / unit)) · scale
 *     bm25    x (k1 + 1) / (k1 (1 - b + b n / meanCount) + x) · scale,   x = |r| / unit,   n values in the column
 *
 * `meanCount` is the mean number of values of a column.
 */
export type ValueWeight = {
  readonly form: WeightForm;
  readonly unit: number;
  readonly scale: number;
  readonly meanCount: number;
};

/** Robertson's constants of BM25. */
const K1 = 1.2;
const B = 0.75;

/** The weight that equals the value. */
export const sparkWeight: ValueWeight = { form: 'spark', unit: 1, scale: 1, meanCount: 1 };

/** The weight of a value, with its sign. `count`: number of values of its column, which only bm25 uses. */
export function weightOf(
  { form, unit, scale, meanCount }: ValueWeight,
  value: number,
  count: number,
): number {
  if (form === 'spark') return value;
  if (form === 'binary') return Math.sign(value);
  if (form === 'raw') return value * scale;
  const x = Math.abs(value) / unit;
  if (form === 'log') return Math.sign(value) * (1 + Math.log1p(x)) * scale;
  return Math.sign(value) * ((x * (K1 + 1)) / (K1 * (1 - B + (B * count) / meanCount) + x)) * scale;
}
