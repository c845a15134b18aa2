import type { StepResults } from '../../engine/run/run-steps.ts';
import { valuesOfStage } from '../tasks/run-tasks.ts';
import type { BiasSums } from '../tasks/task-types.ts';

/**
 * Names of the stages that measure factors: errors on the training and validation sets, and norms of both
 * sides.
 */
export const measureStages = {
  train: 'train-error',
  test: 'test-error',
  users: 'penalty-users',
  items: 'penalty-items',
  /** The penalty of the users as they were solved, before their coefficients are fitted: a stage of rounds. */
  solved: 'solved-penalty-users',
} as const;

export interface ErrorSums {
  /** Σ (r - xᵀθ)² and Σ |r - xᵀθ|, in float64, added in task order. */
  readonly squared: number;
  readonly absolute: number;
  readonly count: number;
}

export interface TrainingErrors {
  /**
   * J = Σ (r - xᵀθ)² + λ_users Σ n_u ‖x_u‖² + λ_items Σ n_v ‖θ_v‖² in float64, in the ratings' own unit
   * (cuMF, eq. 1); with biases r - (μ + β + γ + xᵀθ), and ‖x_u‖² + β_u² for ‖x_u‖².
   */
  readonly loss: number;
  /** Absent for implicit data, whose loss counts all pairs. */
  readonly trainRmse?: number;
  /** See TrainingIteration. */
  readonly fromSolve?: true;
  readonly solved?: Pick<TrainingErrors, 'loss' | 'trainRmse'>;
  readonly testRmse?: number;
  readonly testMae?: number;
  /** The ranking metric of `earlyStopMetric` on the validation set. */
  readonly testMetrics?: Readonly<Record<string, number>>;
}

/**
 * Norms of the factors of a side (users or items), for the penalty in J: Σ n^ν ‖x‖² and Σ ‖x‖² over the rows,
 * in float64, where n is a row's number of ratings. The sums over biases (BiasSums) are 0 if the model has
 * none, or if biases are among the features of x.
 */
export interface SideNorms extends BiasSums {
  readonly weighted: number;
  readonly plain: number;
}

/** The norms of both sides; 0 for a side that is not measured. */
export interface Norms {
  readonly users: SideNorms;
  readonly items: SideNorms;
}

/**
 * Loss and errors from the results of the measuring stages. `penalty` returns the regularization terms of J.
 * `deviation`: σ of the ratings, if training works with ratings divided by σ.
 */
export function trainingErrors(
  measured: StepResults,
  penalty: (norms: Norms) => number,
  deviation = 1,
): TrainingErrors {
  const train = errorSums(measured, measureStages.train);
  return {
    loss: deviation ** 2 * (train.squared + penalty(normsOfSides(measured))),
    trainRmse: deviation * Math.sqrt(train.squared / train.count),
    ...testErrors(measured, deviation),
  };
}

/** Adds up the norms that the tasks of the measuring stages returned, for each side. */
export function normsOfSides(measured: StepResults): Norms {
  return { users: normsOf(measured, measureStages.users), items: normsOf(measured, measureStages.items) };
}

/** Errors on the validation set, if there is one. */
export function testErrors(
  measured: StepResults,
  deviation = 1,
): Pick<TrainingErrors, 'testRmse' | 'testMae'> {
  const test = errorSums(measured, measureStages.test);
  return test.count === 0
    ? {}
    : {
        testRmse: deviation * Math.sqrt(test.squared / test.count),
        testMae: (deviation * test.absolute) / test.count,
      };
}

function errorSums(measured: StepResults, stage: string): ErrorSums {
  const sums = { squared: 0, absolute: 0, count: 0 };
  for (const values of valuesOfStage(measured, stage, 'squared-error')) {
    sums.squared += values.squared;
    sums.absolute += values.absolute;
    sums.count += values.count;
  }
  return sums;
}

/** Adds up the norms that the tasks of a stage returned. */
export function normsOf(measured: StepResults, stage: string): SideNorms {
  const values = valuesOfStage(measured, stage, 'weighted-norm');
  const sumOf = (name: keyof (typeof values)[number]) =>
    values.reduce((sum, { [name]: part = 0 }) => sum + part, 0);
  return {
    weighted: sumOf('sum'),
    plain: sumOf('plain'),
    biasSum: sumOf('biasSum'),
    biasPlain: sumOf('biasPlain'),
    biasAlong: sumOf('biasAlong'),
    biasSquares: values.reduce((sum, { biasSum = 0, biasSquares = biasSum }) => sum + biasSquares, 0),
  };
}
