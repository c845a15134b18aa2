import type { AlsParams } from '../../operators/als/als-params.ts';
import { mostSteps } from '../../operators/als/solver-choice.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { schedulesFor } from '../../operators/sgd/schedules/choose-schedule.ts';
import { factorStride } from '../../operators/planner/sizes.ts';
import { MAXIMUM_FORMED_RANK } from '../../operators/params/common.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';

/** The facts that the choice depends on. */
export interface AlgorithmProblem {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly rank: number;
  readonly cgSteps: AlsParams['cgSteps'];
  /**
   * If set, training stops at this validation RMSE, so both algorithms reach the same error and only time
   * decides.
   */
  readonly targetRmse?: number;
}

export interface AlgorithmChoice {
  readonly algorithm: 'als' | 'sgd';
  readonly reason: string;
}

/**
 * Number of epochs of SGD that reduce the error as much as one iteration of ALS, with a margin. On a CPU, 1.3
 * to 1.5 were measured at MovieLens-20M's shape; on a GPU ten epochs did as much as nine iterations at
 * Netflix's.
 */
const EPOCHS_PER_ITERATION = { cpu: 2, gpu: 1.5 } as const;

/**
 * Without a target RMSE, SGD is chosen only if it is cheaper by this factor, since ALS needs no learning
 * rate.
 */
const WORTH_IT = 1.5;

/**
 * On a GPU both are fast, so SGD is chosen only if it saves at least this number of seconds over ten
 * iterations.
 */
const WORTH_SECONDS = 1;

/**
 * With fewer ratings per row on the longer side (users or items), ALS is chosen: it solves a row at once,
 * while SGD needs many epochs to move it.
 */
const FEW_RATINGS = 20;

/**
 * Chooses ALS or SGD for a problem, by the estimated seconds of an iteration of ALS and of the epochs of SGD
 * that reduce the error as much: two on a CPU, 1.5 on a GPU. A pure function. The first line that applies
 * decides:
 *
 *     the rank is above 512, the largest of SGD                  als
 *     fewer than 20 ratings per row of the longer side           als
 *     a target RMSE is given, and the epochs take less time      sgd
 *     on a CPU, the epochs take less than 2/3 of the iteration   sgd
 *     on a GPU, ten times the difference is at least a second    sgd
 *     else                                                       als
 *
 * With a target RMSE the third and fourth line do not apply.
 *
 * Costs on a CPU were measured on one core, in ns: per rating and row for ALS as in solver-choice.ts, per
 * rating for SGD 4 + 0.4 k; threads divide both equally. On a GPU they were measured on one H200 at Netflix's
 * shape, in ns per rating: an iteration of ALS 0.04 + 2.2e-5 f² (CG, ranks 64 to 200), an epoch 0.02 + 4.7e-4
 * k by tiles (k = 32 to 128), 4.2e-3 k by Hogwild!.
 */
export function chooseAlgorithm(problem: AlgorithmProblem, device: DeviceInfo): AlgorithmChoice {
  const { users, items, ratings, rank, targetRmse } = problem;
  if (rank > MAXIMUM_FORMED_RANK)
    return {
      algorithm: 'als',
      reason: `algorithm auto: als, since rank ${rank} is above ${MAXIMUM_FORMED_RANK}, the largest of sgd`,
    };
  const perRow = ratings / Math.max(users, items);
  if (perRow < FEW_RATINGS) {
    return {
      algorithm: 'als',
      reason: `algorithm auto: als, since the longer side has ${perRow.toFixed(1)} ratings a row: below ${FEW_RATINGS} SGD takes many epochs to move a row that ALS solves at once`,
    };
  }
  const { kind } = device;
  const epochs = EPOCHS_PER_ITERATION[kind];
  const { iteration, epoch } =
    kind === 'gpu'
      ? gpuSeconds(problem, device)
      : {
          iteration: alsSeconds(problem) / device.parallelism,
          epoch: sgdSeconds(problem) / device.parallelism,
        };
  const cost = epochs * epoch;
  const enough =
    targetRmse !== undefined
      ? cost < iteration
      : kind === 'gpu'
        ? 10 * (iteration - cost) >= WORTH_SECONDS
        : WORTH_IT * cost < iteration;
  const algorithm = enough ? 'sgd' : 'als';
  const least =
    kind === 'gpu'
      ? `sgd must save ${WORTH_SECONDS} s in ten iterations`
      : `sgd must be ${WORTH_IT} times cheaper`;
  const rule =
    targetRmse === undefined
      ? `${least}, since ALS has no learning rate to choose`
      : `the cheaper one, since training ends at the target RMSE ${targetRmse}`;
  return {
    algorithm,
    reason: `algorithm auto: ${algorithm}; an iteration of ALS takes about ${seconds(iteration)}, ${epochs} epochs of SGD, which do as much, ${seconds(cost)}; ${rule}`,
  };
}

/** On one core. */
function sgdSeconds({ ratings, rank }: AlgorithmProblem): number {
  return ratings * (4 + 0.4 * factorStride(rank)) * 1e-9;
}

function gpuSeconds(
  problem: AlgorithmProblem,
  device: DeviceInfo,
): { readonly iteration: number; readonly epoch: number } {
  const { ratings, rank } = problem;
  const f = factorStride(rank, device.strideStep);
  const tiles = schedulesFor(problem, checkSgdParams({ rank }), [device]).next().value?.kind === 'tile';
  return {
    iteration: ratings * (0.04 + 2.2e-5 * f ** 2) * 1e-9,
    epoch: ratings * (tiles ? 0.02 + 4.7e-4 * f : 4.2e-3 * f) * 1e-9,
  };
}

/**
 * Estimated seconds of one ALS iteration on one core. Each side uses the cheaper of two solvers: forming A,
 * or conjugate gradients without A.
 */
function alsSeconds({ users, items, ratings, rank, cgSteps }: AlgorithmProblem): number {
  const f = factorStride(rank);
  const side = (rows: number) => {
    const exact = ratings * ((f * (f + 1) + 2 * f) / 40) + rows * ((f ** 3 / 3 + 4 * f ** 2) / 25);
    const cg = ratings * ((f * (2 + 4 * (mostSteps({ cgSteps }) + 1))) / 33);
    return Math.min(exact, cg);
  };
  return (side(users) + side(items)) * 1e-9;
}

function seconds(value: number): string {
  return value < 0.1 ? `${(1000 * value).toFixed(1)} ms` : `${value.toFixed(2)} s`;
}
