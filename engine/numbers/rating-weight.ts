/** The weights of implicit ratings. The host learns their constants, and threads of the CPU compute them. */

/** The formulas for weights; the parameter value `auto` means `log`. */
export type KnownForm = 'spark' | 'raw' | 'binary' | 'log' | 'bm25';

/**
 * The formula for the weight of an implicit rating r, with constants that are learned from the training set.
 * New ratings for the model get weights by the same formula.
 *
 *     spark   |r|
 *     raw     |r| · scale
 *     binary  1
 *     log     (1 + ln(1 + |r| / unit)) · scale
 *     bm25    x (k1 + 1) / (k1 (1 - b + b n_v / meanCount) + x) · scale,   x = |r| / unit,   n_v ratings of the item
 *
 * `scale` makes the mean weight of the training set 1, `unit` is the geometric mean of |r|, and `meanCount`
 * the mean number of ratings of an item.
 */
export type RatingWeight = {
  readonly form: KnownForm;
  readonly unit: number;
  readonly scale: number;
  readonly meanCount: number;
};

/** Robertson's constants of BM25. */
const K1 = 1.2;
const B = 0.75;

/** Spark's form: a rating is its own weight. */
export const sparkWeight: RatingWeight = { form: 'spark', unit: 1, scale: 1, meanCount: 1 };

/**
 * The weight of a rating, with the rating's sign. `count`: number of ratings of its item, which only bm25
 * uses.
 */
export function weightOf(
  { form, unit, scale, meanCount }: RatingWeight,
  rating: number,
  count: number,
): number {
  if (form === 'spark') return rating;
  if (form === 'binary') return Math.sign(rating);
  if (form === 'raw') return rating * scale;
  const x = Math.abs(rating) / unit;
  if (form === 'log') return Math.sign(rating) * (1 + Math.log1p(x)) * scale;
  return Math.sign(rating) * ((x * (K1 + 1)) / (K1 * (1 - B + (B * count) / meanCount) + x)) * scale;
}
