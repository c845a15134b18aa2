/**
 * Options of methods whose values are numbers and choices, with the text of their flags: methods check by these
 * descriptions, and commands, the server and help texts are made from them. Arrow is not loaded for them.
 */
import { MOST_ITERATIONS } from '../operators/params/common.ts';
import { type ChoiceParam, type NumberParam, type Params, seedParam } from '../operators/params/param.ts';

/** Most items of a list of recommendations or of similar items. */
export const countParam = {
  kind: 'whole number',
  help: 'items for each user, or users for each item, 1 to 1,000',
  least: 1,
  most: 1000,
  fallback: 10,
} as const satisfies NumberParam;

/** Options of everything that recommends items. */
export const listParams = {
  coldItems: {
    kind: 'choice',
    help: 'items without ratings, whose factors follow from their attributes: recommended like others, or never',
    choices: ['include', 'exclude'],
    fallback: 'include',
  },
} as const satisfies Params;

/** Options of `recommend` and `recommendForUsers`. */
export const recommendParams = {
  unknownUsers: {
    kind: 'choice',
    help:
      'users that the model does not know get no items, the ones with the most ratings (flagged), or ' +
      'end the command',
    choices: ['empty', 'popular', 'error'],
    fallback: 'empty',
  },
  ...listParams,
} as const satisfies Params;

/** Options of attributes. */
export const attributeParams = {
  minCount: {
    kind: 'whole number',
    help: 'categories, values and words of fewer rows are left out',
    least: 1,
    fallback: 2,
  },
} as const satisfies Params;

export const similarParams = {
  similarity: {
    kind: 'choice',
    help: 'cosine of the angle between two vectors, or their dot product; biases are left out',
    choices: ['cosine', 'dot'],
    fallback: 'cosine',
  },
} as const satisfies Params;

export const sideParam = {
  kind: 'choice',
  help: 'the side whose rows are compared',
  choices: ['item', 'user'],
} as const satisfies ChoiceParam;

/** Options of `buildIndex`. */
export const indexParams = {
  lists: {
    kind: 'whole number',
    help: 'lists over which the items are distributed',
    least: 1,
    most: 1 << 16,
    defaultText: '4 times the root of the number of items',
  },
  recall: {
    kind: 'number',
    help: 'part of the 20 best items that searches find in a sample of users; chooses the lists to search',
    above: 0,
    most: 1,
    fallback: 0.97,
  },
  seed: {
    kind: 'whole number',
    help: 'seed of the lists; the same seed gives the same index',
    least: 0,
    most: Number.MAX_SAFE_INTEGER,
    fallback: 0,
  },
} as const satisfies Params;

/** Options of everything that ranks. */
export const rankUsersParams = {
  rankUsers: {
    kind: 'whole number',
    or: 'all',
    help: 'most users to rank, drawn by the seed, or all',
    least: 1,
    defaultText: '10000',
  },
} as const satisfies Params;

/** Options of `evaluateRanking`. */
export const rankingParams = {
  minRating: { kind: 'number', help: 'only test pairs with at least this rating are positives' },
  coldPairs: {
    kind: 'choice',
    help: 'test pairs that the model does not know: left out, or counted as misses',
    choices: ['drop', 'miss'],
    fallback: 'drop',
  },
  resamples: {
    kind: 'whole number',
    help: 'bootstrap resamples for the 95 % intervals; 0: no intervals',
    least: 0,
    most: 10_000,
    fallback: 1000,
  },
  ...rankUsersParams,
  seed: { ...seedParam, help: 'seed of the bootstrap, and of the users that are drawn' },
} as const satisfies Params;

/** One of the lengths `k` of the lists that `evaluateRanking` measures. */
export const listLengthParam = {
  kind: 'whole number',
  help: 'lengths of the lists that are measured',
  least: 1,
  most: 10_000,
} as const satisfies NumberParam;

/** Options of `TrainValidationSplit`. */
export const tuningParams = {
  search: {
    kind: 'choice',
    help:
      'all combinations; random combinations; or random ones of which only the best third continues, ' +
      'again and again',
    choices: ['grid', 'random', 'halving'],
    defaultText: 'grid if all values are lists, else random',
  },
  trials: {
    kind: 'whole number',
    help: 'number of trials of a random search',
    least: 1,
    fallback: 30,
  },
  validationFraction: {
    kind: 'number',
    help: 'the part of the ratings that trials are measured on',
    above: 0,
    below: 1,
    fallback: 0.1,
  },
  parallelism: {
    kind: 'whole number',
    help: 'trials at the same time; each uses all workers already',
    least: 1,
    fallback: 1,
  },
  warmStart: {
    kind: 'toggle',
    help:
      'ALS: start with the factors of the next larger λ, with half the iterations; faster, and ' +
      'slightly better for small λ',
    fallback: false,
  },
  ranking: { kind: 'toggle', help: 'rank the pairs of the validation set by each model' },
  ...rankUsersParams,
  seed: { ...seedParam, help: 'seed of the split and of the trials' },
} as const satisfies Params;

/** Numbers of parts of splits. */
export const splitParams = {
  folds: {
    kind: 'whole number',
    help: 'folds of a cross-validation: DIR/fold-1/train, DIR/fold-1/test and so on',
    called: 'the number of folds',
    least: 2,
    most: 1000,
  },
  leaveOut: {
    kind: 'whole number',
    help: 'hold out this number of ratings of each user who has more',
    called: 'the number of ratings to leave out',
    least: 1,
    most: 1000,
  },
  by: {
    kind: 'choice',
    help: 'hold out ratings at random, or the last by --timestamp-col',
    choices: ['random', 'time'],
    fallback: 'random',
  },
} as const satisfies Params;

/** Options of training with checkpoints. */
export const checkpointParams = {
  checkpointDir: {
    kind: 'text',
    help: 'folder for checkpoints of this run; the last two are kept',
    meaning: 'the path of a folder',
  },
  checkpointInterval: {
    kind: 'whole number',
    help: 'iterations between two checkpoints; the last iteration has one too',
    least: 1,
    most: MOST_ITERATIONS,
    fallback: 10,
  },
  resume: {
    kind: 'toggle',
    help: 'continue from the newest checkpoint, or start from the beginning without one',
    fallback: false,
  },
} as const satisfies Params;
