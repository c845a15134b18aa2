import { planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import type { AlsOptions, Session } from '../../index.ts';
import { sizedParams } from '../../operators/als/als-params.ts';
import { rowShifts } from '../../operators/als/implicit/weights.ts';
import { chooseKernels } from '../../operators/als/kernel-choices.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import type { AlsGrid } from '../../operators/als/plan/problem.ts';
import { trainAls } from '../../operators/als/train.ts';
import { oneBlock } from '../../operators/ratings/ratings.ts';
import { testRandom } from './ratings.ts';
import { alsProblem } from './steps/small-problems.ts';

/**
 * ALS of 90 users and 40 items drawn by a seed, by a grid: gives the last test RMSE, of implicit data the
 * logarithm of the last loss.
 */
export function smallAls(
  seed: number,
): (session: Session, options: AlsOptions, grid?: AlsGrid) => Promise<number> {
  const random = testRandom(seed);
  const rows = Array.from({ length: 90 }, () =>
    Array.from({ length: 40 }, (_, item) => item).filter(() => random() < 0.3),
  );
  const test = rows.map((row) => row.slice(0, 2));
  const data = alsProblem(rows, 40, test);
  const profile = { users: 90, items: 40, ratings: rows.flat().length, testRatings: test.flat().length };
  return (session, options, grid) => {
    const params = sizedParams(
      checkAlsParams({ rank: 5, maxIter: 3, solver: 'cholesky', ...options }),
      profile,
    );
    const shifts = params.implicitPrefs
      ? {
          shifts: {
            users: rowShifts(oneBlock(data.byUser), 40, params),
            items: rowShifts(oneBlock(data.byItem), 90, params),
          },
        }
      : {};
    return Holdings.within(session.context(), async (ctx) => {
      const devices = planDevices(ctx.executor);
      const plan = planAls(profile, params, devices, await chooseKernels(profile, params, ctx), { grid });
      const { iterations } = await trainAls(
        { ...data, ...shifts, ...(params.implicitPrefs ? { test: undefined } : {}) },
        params,
        { devices: devices.compute, plan: () => plan },
        ctx,
      );
      const { loss, testRmse } = iterations.at(-1)!;
      return testRmse ?? Math.log(loss);
    });
  };
}
