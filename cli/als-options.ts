import type { AlsOptions } from '../api/als.ts';
import type { TrainingValues } from './options/training-options.ts';

/** The flags as parameters of `ALS`. */
export function alsOptions(values: TrainingValues): AlsOptions {
  const { rank, maxIter, regParam, seed, solver, cgSteps, earlyStop, targetRmse, userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows, coldStart } = values;
  return {
    ...{ rank, maxIter, regParam, seed, solver, cgSteps, earlyStop, targetRmse },
    ...{ userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows },
    coldStartStrategy: coldStart,
  };
}
