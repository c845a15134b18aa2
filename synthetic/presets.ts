import { UsageError } from '../engine/errors.ts';
import type { RatingPreset } from './preset.ts';

/** Rank of the planted signal in every preset. */
const rank = 16;

/**
 * MovieLens-20M: its users, items, scale and extreme degrees (F. M. Harper, J. A. Konstan: The MovieLens
 * Datasets, ACM TiiS 5(4), 2015; median and maximum are 68 and 9,254 ratings per user, 18 and 67,310 per
 * item), with 20,000,000 ratings instead of 20,000,263.
 */
export const movielens20m: RatingPreset = {
  name: 'movielens20m',
  users: 138_493,
  items: 27_278,
  train: 18_000_000,
  test: 2_000_000,
  degrees: { minimum: 20, maximum: 9_254, exponent: 1.76 },
  popularity: { exponent: 2.7, head: 0.0095 },
  scale: { minimum: 0.5, maximum: 5, step: 0.5 },
  model: { mean: 3.58, userBias: 0.43, itemBias: 0.48, rank, interaction: 0.48, noise: 0.73 },
};

/**
 * The Netflix Prize without its last dates: counts as in cuMF_SGD, Table 2. A user has 206 training ratings
 * on average, 91 in the median and about 15,000 at most; an item 5,576, 540 and about 203,000.
 */
const netflix: RatingPreset = {
  name: 'netflix',
  users: 480_189,
  items: 17_770,
  train: 99_072_112,
  test: 1_408_395,
  degrees: { minimum: 1, maximum: 15_250, exponent: 2.09 },
  popularity: { exponent: 2.32, head: 0.0168 },
  scale: { minimum: 1, maximum: 5, step: 1 },
  model: { mean: 3.65, userBias: 0.42, itemBias: 0.5, rank, interaction: 0.54, noise: 0.785 },
};

/**
 * Yahoo! Music of the KDD Cup 2011, track 1: counts as in cuMF_SGD, Table 2, whose test set is the validation
 * set; 468,366 ratings of the most popular item (KONECT, "Yahoo songs"). The fewest ratings of a user are the
 * 20 of the whole minus the 6 of the set that stayed secret; median and maximum are guesses. The floor is as
 * far below the papers' target of 22.0 as Netflix's is below 0.92.
 */
const yahoomusic: RatingPreset = {
  name: 'yahoomusic',
  users: 1_000_990,
  items: 624_961,
  train: 252_800_275,
  test: 4_003_960,
  degrees: { minimum: 14, maximum: 120_000, exponent: 1.311 },
  popularity: { exponent: 1.095, head: 0.000_037_8 },
  scale: { minimum: 1, maximum: 100, step: 1 },
  model: { mean: 50, userBias: 16, itemBias: 11, rank, interaction: 17, noise: 20.5 },
};

/**
 * Hugewiki, English terms (items) in documents (users): counts as in cuMF_SGD, Table 2. The values are
 * frequencies whose distribution no paper gives; here they are positive multiples of 0.05 with a floor as far
 * below the papers' target of 0.52 as Netflix's is below 0.92. Degrees are guesses of the same kind: half of
 * the documents have the most frequent term.
 */
const hugewiki: RatingPreset = {
  name: 'hugewiki',
  users: 50_082_603,
  items: 39_780,
  train: 3_069_817_980,
  test: 31_327_899,
  degrees: { minimum: 1, maximum: 15_000, exponent: 5 },
  popularity: { exponent: 1.302, head: 0.000_521 },
  scale: { minimum: 0.05, maximum: 10, step: 0.05 },
  model: { mean: 1.8, userBias: 0.3, itemBias: 0.4, rank, interaction: 0.35, noise: 0.43 },
};

/**
 * MovieLens-10M as in clMF (Table 1), whose 65,133 columns are the largest movie id, so that most have no
 * rating; with a test part that completes the 10,000,054 ratings. Scale and extreme degrees are as in the
 * data set.
 */
const movielens10m: RatingPreset = {
  name: 'movielens10m',
  users: 71_567,
  items: 65_133,
  train: 8_000_044,
  test: 2_000_010,
  degrees: { minimum: 20, maximum: 7_359, exponent: 1.87 },
  popularity: { exponent: 5, head: 0.0088 },
  scale: { minimum: 0.5, maximum: 5, step: 0.5 },
  model: { mean: 3.55, userBias: 0.43, itemBias: 0.48, rank, interaction: 0.48, noise: 0.73 },
};

/**
 * Yahoo! Music R1, ratings of artists: users, items and training ratings as in clMF (Table 1), plus a
 * hundredth for testing. Degrees are guesses.
 */
const yahoor1: RatingPreset = {
  name: 'yahoor1',
  users: 1_948_882,
  items: 98_212,
  train: 115_248_575,
  test: 1_152_486,
  degrees: { minimum: 1, maximum: 20_000, exponent: 1.855 },
  popularity: { exponent: 1.6, head: 0.001_39 },
  scale: { minimum: 1, maximum: 100, step: 1 },
  model: { mean: 50, userBias: 16, itemBias: 11, rank, interaction: 17, noise: 20.5 },
};

/**
 * Yahoo! R4, ratings of films: users, items and training ratings as in clMF (Table 1), plus a twentieth for
 * testing. Degrees are guesses.
 */
const yahoor4: RatingPreset = {
  name: 'yahoor4',
  users: 7_642,
  items: 11_916,
  train: 211_231,
  test: 10_562,
  degrees: { minimum: 10, maximum: 1_700, exponent: 2.42 },
  popularity: { exponent: 1.2, head: 0.000_514 },
  scale: { minimum: 1, maximum: 5, step: 1 },
  model: { mean: 4.0, userBias: 0.5, itemBias: 0.4, rank, interaction: 0.5, noise: 0.85 },
};

/**
 * Delicious, weights of bookmarks: users, items and training ratings as in clMF (Table 1), plus a tenth for
 * testing. Degrees and scale are guesses.
 */
const delicious: RatingPreset = {
  name: 'delicious',
  users: 107_253,
  items: 65_000,
  train: 487_131,
  test: 48_713,
  degrees: { minimum: 1, maximum: 1_500, exponent: 1.77 },
  popularity: { exponent: 1.05, head: 0.000_391 },
  scale: { minimum: 1, maximum: 5, step: 1 },
  model: { mean: 3, userBias: 0.4, itemBias: 0.5, rank, interaction: 0.4, noise: 0.75 },
};

const presets: readonly RatingPreset[] = [
  movielens20m,
  netflix,
  yahoomusic,
  hugewiki,
  movielens10m,
  yahoor1,
  yahoor4,
  delicious,
];

export const presetNames: readonly string[] = presets.map(({ name }) => name);

/** The preset of that name. @throws UsageError that lists the known names. */
export function findPreset(name: string): RatingPreset {
  const found = presets.find((preset) => preset.name === name);
  if (found !== undefined) return found;
  throw new UsageError(`unknown preset "${name}"`, {
    phase: 'generate',
    advice: `Known presets: ${presetNames.join(', ')}`,
  });
}
