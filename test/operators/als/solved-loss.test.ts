/**
 * Loss and training error computed by the solve of the users, compared with a pass over the ratings after the
 * last iteration.
 */
import { describe, expect, it } from 'vitest';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import { ALS, type AlsOptions, type Model } from '../../../index.ts';
import { everyNth, isDeep } from '../../support/deep.ts';
import { randomRatings, ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

// Some rows with fewer ratings than features, some with far more.
const rows = [
  ...randomRatings(61, 400, 120, 6000),
  ...randomRatings(62, 20, 120, 1800).map((one) => ({ ...one, user: one.user + 400 })),
];
const test = randomRatings(63, 300, 120, 300);

const settings: Readonly<Record<string, AlsOptions>> = {
  'with biases': {},
  'with damped biases and another exponent': { biasDamping: [3, 5], regExponent: 0.5 },
  'by Cholesky': { solver: 'cholesky' },
  'by conjugate gradients': { solver: 'cg', cgSteps: 3 },
  'without biases': { biases: false, regOffset: 0 },
  'without biases, by conjugate gradients': { biases: false, solver: 'cg', cgSteps: 2 },
  'non-negative': { nonnegative: true },
  'from parts of Θ': { partitionItems: '2,3', partitionUsers: '3,2' },
  'from parts of Θ without biases': {
    partitionItems: '2,3',
    partitionUsers: '3,2',
    biases: false,
    solver: 'cg',
  },
  implicit: { implicitPrefs: true, alpha: 10 },
  'implicit with the weights of iALS': { implicitPrefs: true, unobservedWeight: 0.1, solver: 'cg' },
  'implicit and non-negative': { implicitPrefs: true, nonnegative: true },
};

const session = await cpuSession();

function fit(
  options: AlsOptions,
  ratings: readonly Triple[] = rows,
  validation?: readonly Triple[],
): Promise<Model> {
  return new ALS({ rank: 12, seed: 3, ...options }).fit(
    session.from(ratingBatches(ratings)),
    validation && { validation: session.from(ratingBatches(validation)) },
  );
}

function apart(a: number | undefined, b: number | undefined): number {
  return a === undefined && b === undefined ? 0 : Math.abs((a as number) / (b as number) - 1);
}

describe('loss and training error out of the solve', () => {
  it.each(everyNth(Object.entries(settings), 2, 1))('are those of a pass: %s', async (_, options) => {
    const model = await fit({ ...options, maxIter: isDeep ? 3 : 2 });
    for (const maxIter of isDeep ? [1, 2] : [1]) {
      const told = model.training!.iterations[maxIter - 1];
      const passed = (await fit({ ...options, maxIter })).training!.iterations.at(-1)!;
      expect(told.fromSolve).toBe(true);
      expect(passed.fromSolve).toBeUndefined();
      expect(apart(told.loss, passed.loss)).toBeLessThan(2e-6);
      expect(apart(told.trainRmse, passed.trainRmse)).toBeLessThan(3e-6);
      // The solve computes the same for the last iteration.
      expect(passed.solved).toEqual({
        loss: told.loss,
        ...(told.trainRmse === undefined ? {} : { trainRmse: told.trainRmse }),
      });
    }
  });

  it('give way to a pass where the ratings are all but reproduced', async () => {
    const exact = rows.map((one) => ({ ...one, rating: 1 + (one.user % 3) * (one.item % 2) }));
    const { iterations } = (
      await fit({ biases: false, regParam: 1e-5, regOffset: 0, maxIter: 8, solver: 'cholesky' }, exact)
    ).training!;
    const passes = iterations.slice(0, -1).filter(({ fromSolve }) => !fromSolve);
    expect(passes.length).toBeGreaterThan(0);
    for (const { trainRmse } of passes) expect(trainRmse).toBeLessThan(0.3);
  });

  it('are those of a pass for the iteration that early stop keeps, and the last', async () => {
    const { iterations, bestIteration } = (
      await fit({ maxIter: 30, earlyStop: 2, regParam: 1e-4, regOffset: 0 }, rows, test)
    ).training!;
    expect(bestIteration).toBeLessThan(iterations.length);
    expect(iterations[bestIteration - 1].fromSolve).toBeUndefined();
    expect(iterations.at(-1)!.fromSolve).toBeUndefined();
  });

  it('are in the plan: the pass over the ratings is left to the last iteration', async () => {
    const { plan } = (await fit({ maxIter: 3 })).training!;
    expect(stageNamed(plan, 'train-error')).toMatchObject({
      brief: 'left out',
      reasons: [expect.stringContaining('after the last iteration')],
    });
  });
});
