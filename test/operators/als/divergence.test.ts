import { describe, expect, it } from 'vitest';
import type { SizedAlsParams } from '../../../operators/als/als-params.ts';
import type { AlsData } from '../../../operators/als/factors.ts';
import { alsTraining, type LossFacts } from '../../../operators/als/train.ts';
import type { BoundRun } from '../../../operators/training/bind-plan.ts';

/** 20 ratings of root mean square `level` times `unit`. */
function training(level: number, unit: number, implicitPrefs = false) {
  const data = { byUser: { ratings: 20 }, byItem: {} } as AlsData;
  const facts = {
    offset: 0,
    unit,
    level: { mean: 0.6 * level, deviation: 0.8 * level, columns: new Float32Array() },
    targets: 20 * level ** 2 * unit ** 2,
  } satisfies LossFacts;
  const run = { plan: {}, bound: { phases: { measure: [] } }, given: [] } as unknown as BoundRun;
  return alsTraining(run, data, { implicitPrefs } as SizedAlsParams, facts, undefined);
}

describe('ALS has diverged', () => {
  it('by a loss ten times the first one, or one that is not a number', () => {
    const diverged = (loss: number, first: number) => training(2, 1).diverged(loss, first);
    expect([9.9, 10.1, Number.NaN, Infinity].map((loss) => diverged(loss, 1))).toEqual([
      false,
      true,
      true,
      true,
    ]);
    // The loss of implicit data may be negative.
    expect([7.9, 8.1].map((loss) => diverged(loss, -1))).toEqual([false, true]);
  });

  it.each([false, true])('not by the rounding of a perfect fit, at any scale, implicit %s', (implicit) => {
    for (const unit of [2 ** -40, 1, 2 ** 40]) {
      const squares = 20 * 2 ** 2 * unit ** 2;
      const diverged = (loss: number) => training(2, unit, implicit).diverged(loss, 3.7e-13 * unit ** 2);
      expect([4.1e-11, 0.9e-6, 1.1e-6].map((part) => diverged(part * squares))).toEqual([false, false, true]);
    }
  });
});
