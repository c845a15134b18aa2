import type { TaskOutcome } from '../engine/task.ts';
import type { CpuTasks, TaskHandler, TaskScope } from './handler.ts';
import { batchOrder } from './tasks/sgd/batch-order.ts';
import { copyRows } from './tasks/sgd/copy-rows.ts';
import { combineDuplicates, findDuplicates } from './tasks/loading/duplicates.ts';
import { addRows } from './tasks/equations/add-rows.ts';
import { normalEquations } from './tasks/equations/normal-equations.ts';
import { placeRows } from './tasks/equations/place-rows.ts';
import { solveEquations } from './tasks/equations/solve-equations.ts';
import { gram } from './tasks/implicit/gram.ts';
import { implicitError } from './tasks/implicit/implicit-error.ts';
import { shiftedNorm } from './tasks/implicit/shifted-norm.ts';
import { updateImplicit } from './tasks/implicit/update-implicit.ts';
import { initialize } from './tasks/initialize.ts';
import { composeMaps, keepKnown } from './tasks/numbering/maps.ts';
import { mergeIds } from './tasks/numbering/merge-ids.ts';
import { countIds, rankIds } from './tasks/numbering/near-ids.ts';
import { numberKeys, recodeIds } from './tasks/numbering/number-keys.ts';
import { uniteIds } from './tasks/numbering/unite-ids.ts';
import { predict } from './tasks/predict.ts';
import { rankListed } from './tasks/rank-listed.ts';
import { countColumns, scatterColumns } from './tasks/loading/scatter-columns.ts';
import { placeColumns } from './tasks/loading/place-columns.ts';
import { dampedMeans, standardize, sumColumns, sumRatings, sumValues } from './tasks/loading/rating-sums.ts';
import { countPairs, scatterPairs } from './tasks/loading/scatter-pairs.ts';
import { prepareSearch } from './tasks/search/prepare-search.ts';
import { search } from './tasks/search/search.ts';
import { searchForRow } from './tasks/search/search-for-row.ts';
import { sgdBlock } from './tasks/sgd/sgd-block.ts';
import { shrinkRows } from './tasks/sgd/shrink-rows.ts';
import { dealRatings, shuffleRatings } from './tasks/sgd/shuffle-ratings.ts';
import { sortBands } from './tasks/loading/sort-bands.ts';
import { splitBlock, splitPairs } from './tasks/loading/split-parts.ts';
import { squaredError } from './tasks/squared-error.ts';
import { topN } from './tasks/top-n.ts';
import { update } from './tasks/update.ts';
import { addProducts, addResiduals } from './tasks/vectors/add-vectors.ts';
import { beginGradients, endGradients, stepGradients } from './tasks/vectors/take-steps.ts';
import { waveOrder } from './tasks/sgd/wave-order.ts';
import { weightedNorm } from './tasks/weighted-norm.ts';

const handlers: { readonly [K in keyof CpuTasks]: TaskHandler<K> } = {
  rest: () => ({ rows: 0 }),
  update,
  'normal-equations': normalEquations,
  'solve-equations': solveEquations,
  'add-residuals': addResiduals,
  'add-products': addProducts,
  'begin-gradients': beginGradients,
  'step-gradients': stepGradients,
  'end-gradients': endGradients,
  'add-rows': addRows,
  'place-rows': placeRows,
  'squared-error': squaredError,
  'weighted-norm': weightedNorm,
  gram,
  'update-implicit': updateImplicit,
  'implicit-error': implicitError,
  'shifted-norm': shiftedNorm,
  predict,
  'top-n': topN,
  'prepare-search': prepareSearch,
  search,
  'search-for-row': searchForRow,
  'rank-listed': rankListed,
  initialize,
  'number-keys': numberKeys,
  'recode-ids': recodeIds,
  'count-ids': countIds,
  'rank-ids': rankIds,
  'unite-ids': uniteIds,
  'merge-ids': mergeIds,
  'compose-maps': composeMaps,
  'keep-known': keepKnown,
  'count-pairs': countPairs,
  'scatter-pairs': scatterPairs,
  'count-columns': countColumns,
  'scatter-columns': scatterColumns,
  'split-pairs': splitPairs,
  'split-block': splitBlock,
  'sort-bands': sortBands,
  'find-duplicates': findDuplicates,
  'combine-duplicates': combineDuplicates,
  'sum-ratings': sumRatings,
  'damped-means': dampedMeans,
  'sum-columns': sumColumns,
  'sum-values': sumValues,
  standardize,
  'place-columns': placeColumns,
  'deal-ratings': dealRatings,
  'shuffle-ratings': shuffleRatings,
  'copy-rows': copyRows,
  'shrink-rows': shrinkRows,
  'sgd-block': sgdBlock,
  'batch-order': batchOrder,
  'wave-order': waveOrder,
};

const byName: Readonly<Record<string, ((scope: TaskScope<never>) => TaskOutcome) | undefined>> = handlers;

/** The handler of a task that came as a message; undefined for one that this device does not know. */
export function handlerOf(kernel: string): ((scope: TaskScope) => TaskOutcome) | undefined {
  // A task is made by its contract, so its parameters are those of its kernel.
  return byName[kernel] as ((scope: TaskScope) => TaskOutcome) | undefined;
}
