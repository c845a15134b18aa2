import type { AlsOptions } from '../../api/als.ts';
import type { TrainingValues } from '../options/training-options.ts';

/** The flags as parameters of `ALS`. */
export function alsOptions(values: TrainingValues): AlsOptions {
  const { coldStart, ...rest } = values;
  const { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse, userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows } = rest;
  const model = { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse, coldStartStrategy: coldStart };
  return { ...model, userCol, itemCol, ratingCol, timestampCol, onDuplicates, onBadRows };
}
