import type { DevicePlan } from '../engine/physical-plan.ts';
import { factorStride } from './partition.ts';

/** What the choice is made from. */
export interface AlgorithmProblem {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly rank: number;
  readonly cgSteps: number;
  /** Training ends at this validation RMSE: then only time counts. */
  readonly targetRmse?: number;
}

export interface AlgorithmChoice {
  readonly algorithm: 'als' | 'sgd';
  readonly reason: string;
}

/** Epochs of SGD that do as much for the error as one iteration of ALS: 1.3 to 1.5 at MovieLens-20M's shape, with some in hand. */
const EPOCHS_PER_ITERATION = 2;

/** Without a target SGD must be this much cheaper: ALS has no learning rate to choose. */
const WORTH_IT = 1.5;

/** Below so many ratings a row of the longer side, SGD takes many epochs to move a row that ALS solves at once. */
const FEW_RATINGS = 20;

/**
 * Whether a problem is for ALS or for SGD. A pure function; the rule:
 *
 *     a GPU computes                                       als (its iterations are short there, too, and it has no rate to choose)
 *     fewer than 20 ratings a row of the longer side       als
 *     2 epochs of SGD cost less than an iteration of ALS   sgd; without a target RMSE only when less than 2/3
 *     else                                                 als
 *
 * Costs are those measured on one core, in ns: of a rating and a row in ALS as in solver-choice.ts, of a rating in SGD
 * 4 + 0.4 k. Threads divide both alike.
 */
export function chooseAlgorithm(problem: AlgorithmProblem, device: Pick<DevicePlan, 'kind' | 'parallelism'>): AlgorithmChoice {
  const { users, items, ratings, rank, targetRmse } = problem;
  if (device.kind === 'gpu') return { algorithm: 'als', reason: 'algorithm auto: als, since a GPU computes: iterations are short there either way, and ALS has no learning rate to choose' };
  const perRow = ratings / Math.max(users, items);
  if (perRow < FEW_RATINGS) {
    return { algorithm: 'als', reason: `algorithm auto: als, since the longer side has ${perRow.toFixed(1)} ratings a row: below ${FEW_RATINGS} SGD takes many epochs to move a row that ALS solves at once` };
  }
  const iteration = alsSeconds(problem) / device.parallelism;
  const epoch = (ratings * (4 + 0.4 * factorStride(rank)) * 1e-9) / device.parallelism;
  const least = targetRmse === undefined ? WORTH_IT : 1;
  const algorithm = EPOCHS_PER_ITERATION * epoch * least < iteration ? 'sgd' : 'als';
  const rule = targetRmse === undefined ? `sgd must be ${WORTH_IT} times cheaper, since ALS has no learning rate to choose` : `the cheaper one, since training ends at the target RMSE ${targetRmse}`;
  return { algorithm, reason: `algorithm auto: ${algorithm}; an iteration of ALS takes about ${seconds(iteration)}, ${EPOCHS_PER_ITERATION} epochs of SGD, which do as much, ${seconds(EPOCHS_PER_ITERATION * epoch)}; ${rule}` };
}

/** One iteration on one core: each side by the cheaper of forming A and matrix-free CG. */
function alsSeconds({ users, items, ratings, rank, cgSteps }: AlgorithmProblem): number {
  const f = factorStride(rank);
  const side = (rows: number) => {
    const exact = ratings * ((f * (f + 1) + 2 * f) / 40) + rows * ((f ** 3 / 3 + 4 * f ** 2) / 25);
    const cg = ratings * ((f * (2 + 4 * (cgSteps + 1))) / 33);
    return Math.min(exact, cg);
  };
  return (side(users) + side(items)) * 1e-9;
}

function seconds(value: number): string {
  return value < 0.1 ? `${(1000 * value).toFixed(1)} ms` : `${value.toFixed(2)} s`;
}
