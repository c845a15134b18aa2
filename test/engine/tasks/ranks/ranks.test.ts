/**
 * Every task on factors, and every way to solve rows, against its float64 version at many ranks. `npm run
 * test:deep` takes all ranks up to 160, and `npm test` a dozen odd ones. A case then takes only each third rank on
 * a CPU, starting at another one than the case before it, and fewer on a GPU, which compiles for each rank. The
 * steps have no common factor with 16, so that in the deep run every case meets all remainders of a rank by 16.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { Device } from '../../../../engine/run/device.ts';
import { deviceKinds } from '../../../support/devices/device-kinds.ts';
import { isDeep } from '../../../support/deep.ts';
import { otherCases } from './others.ts';
import { DeviceTasks } from './rank-case.ts';
import { solvingCases } from './solving.ts';

const ranks = isDeep
  ? Array.from({ length: 160 }, (_, k) => k + 1)
  : [1, 3, 5, 9, 15, 21, 35, 63, 77, 99, 131, 157];
/** Every n-th rank is taken by a case. */
const steps = isDeep ? { CPU: 1, GPU: 7 } : { CPU: 3, GPU: 11 };

describe.each(deviceKinds)('at every rank a $kind', ({ kind, open, skip }) => {
  let device: Device | undefined;
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => device?.close());

  const cases = [...solvingCases, ...otherCases].filter(({ onlyCpu }) => kind === 'CPU' || !onlyCpu);
  const own = steps[kind];
  for (const [number, { name, slow, check }] of cases.entries())
    it.skipIf(skip).each(ranks.filter((_, at) => (at + number) % (slow ? 5 * own : own) === 0))(
      `computes ${name}, rank %i`,
      (rank) => check(new DeviceTasks(device!), rank),
    );
});
