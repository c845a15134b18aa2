/** Trainings by different grids of the same small ratings, and their errors for comparison. */
import { expect } from 'vitest';
import { ALS, type AlsOptions, type Model, type Session } from '../../index.ts';
import { randomRatings, ratingBatches } from './ratings.ts';

const rows = randomRatings(51, 300, 200, 9000);
const test = randomRatings(52, 300, 200, 500);

/** A model of rank 9; with explicit data by its errors on a validation set too. */
export async function fitGrid(on: Session, options: AlsOptions): Promise<Model> {
  return new ALS({ rank: 9, seed: 3, ...options }).fit(
    on.from(ratingBatches(rows)),
    options.implicitPrefs ? {} : { validation: on.from(ratingBatches(test)) },
  );
}

/** The errors of a model; for the loss, its logarithm. */
export function errorsOf(model: Model): number[] {
  const { loss, trainRmse, testRmse } = model.training!.iterations.at(-1)!;
  return [
    1 + Math.log(loss),
    ...(trainRmse === undefined ? [] : [trainRmse]),
    ...(testRmse === undefined ? [] : [testRmse]),
  ];
}

/** Expects the errors within 1e-4; `named` is the name of the case in a failure. */
export function expectErrors(
  model: Model,
  expected: readonly number[],
  named: Readonly<Record<string, unknown>>,
): void {
  errorsOf(model).forEach((value, at) =>
    expect({
      ...named,
      difference: Math.abs(value - expected[at]) < 1e-4 ? 0 : value - expected[at],
    }).toEqual({ ...named, difference: 0 }),
  );
}
