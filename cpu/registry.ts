import type { TaskHandler } from './handler.ts';
import { copyRows } from './tasks/copy-rows.ts';
import { cutBlock } from './tasks/cut-block.ts';
import { combineDuplicates, findDuplicates } from './tasks/duplicates.ts';
import { initialize } from './tasks/initialize.ts';
import { numberKeys } from './tasks/number-keys.ts';
import { predict } from './tasks/predict.ts';
import { countColumns, scatterColumns } from './tasks/scatter-columns.ts';
import { countPairs, scatterPairs } from './tasks/scatter-pairs.ts';
import { sgdBlock } from './tasks/sgd-block.ts';
import { dealRatings, shuffleRatings } from './tasks/shuffle-ratings.ts';
import { sortBands } from './tasks/sort-bands.ts';
import { squaredError } from './tasks/squared-error.ts';
import { topN } from './tasks/top-n.ts';
import { update } from './tasks/update.ts';
import { weightedNorm } from './tasks/weighted-norm.ts';

/** What the CPU device can run, by the names of operators/tasks.ts. */
export const handlers: Readonly<Record<string, TaskHandler>> = {
  /** Does nothing: what a thread does before any task, such as collecting garbage, is all that is wanted. */
  rest: () => ({ rows: 0 }),
  update,
  'squared-error': squaredError,
  'weighted-norm': weightedNorm,
  predict,
  'top-n': topN,
  initialize,
  'number-keys': numberKeys,
  'count-pairs': countPairs,
  'scatter-pairs': scatterPairs,
  'count-columns': countColumns,
  'scatter-columns': scatterColumns,
  'sort-bands': sortBands,
  'find-duplicates': findDuplicates,
  'combine-duplicates': combineDuplicates,
  'cut-block': cutBlock,
  'deal-ratings': dealRatings,
  'shuffle-ratings': shuffleRatings,
  'copy-rows': copyRows,
  'sgd-block': sgdBlock,
};
