/** Factors and ratings whose home is the host come to the device part by part, and give the same model. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type AlsOptions, Session } from '../../index.ts';
import { rowShifts } from '../../operators/als/implicit/weights.ts';
import { chooseKernels } from '../../operators/als/kernel-choices.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import type { AlsGrid, SideGrid } from '../../operators/als/plan/grid.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { trainAls } from '../../operators/als/train.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { testRandom } from '../support/ratings.ts';
import { alsProblem } from '../support/steps/small-problems.ts';

const random = testRandom(7);
const rows = Array.from({ length: 90 }, () => Array.from({ length: 40 }, (_, item) => item).filter(() => random() < 0.3));
const data = alsProblem(rows, 40, rows.map((row) => row.slice(0, 2)));
const profile = { users: 90, items: 40, ratings: rows.flat().length, testRatings: rows.flatMap((row) => row.slice(0, 2)).length };

const side = (q: number, more: Partial<SideGrid> = {}): SideGrid => ({ q, fixed: 'whole', factors: 'device', ratings: 'device', ...more });
const grids: Record<string, AlsGrid> = {
  'X at the host, in parts': { users: side(5, { fixed: 'parts', factors: 'host' }), items: side(1) },
  'X at the host, ratings staged': { users: side(5, { fixed: 'parts', factors: 'host', ratings: 'host' }), items: side(2, { ratings: 'host' }) },
  'both at the host, ratings staged': { users: side(4, { fixed: 'parts', factors: 'host', ratings: 'host' }), items: side(3, { fixed: 'parts', factors: 'host', ratings: 'host' }) },
};

const settings: [string, AlsOptions][] = [['explicit', {}], ['implicit', { implicitPrefs: true }]];

async function errorOf(session: Session, options: AlsOptions, grid?: AlsGrid): Promise<number> {
  const params = checkAlsParams({ rank: 5, maxIter: 3, solver: 'cholesky', ...options });
  const shifts = params.implicitPrefs ? { shifts: { users: rowShifts(data.byUser, 40, params), items: rowShifts(data.byItem, 90, params) } } : {};
  return Holdings.within(session.context(), async (ctx) => {
    const devices = planDevices(ctx.executor);
    const plan = planAls(profile, params, devices, await chooseKernels(profile, params, ctx), { grid });
    const { iterations } = await trainAls({ ...data, ...shifts, ...(params.implicitPrefs ? { test: undefined } : {}) }, params, { devices: devices.compute, plan: () => plan }, ctx);
    const { loss, testRmse } = iterations.at(-1)!;
    return testRmse ?? Math.log(loss);
  });
}

describe('homes of factors and ratings', () => {
  let cpu: Session;
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => cpu.close());

  it.each(settings)('on a CPU, %s', async (_, options) => {
    const expected = await errorOf(cpu, options);
    for (const [name, grid] of Object.entries(grids)) expect({ name, difference: Math.abs((await errorOf(cpu, options, grid)) - expected) < 1e-4 }).toEqual({ name, difference: true });
  });

  it.skipIf(noGpu)('on a GPU', async () => {
    await using gpu = await Session.create({ device: 'gpu', workers: 1 });
    const expected = await errorOf(cpu, {});
    for (const [name, grid] of Object.entries(grids)) expect({ name, difference: Math.abs((await errorOf(gpu, {}, grid)) - expected) < 1e-4 }).toEqual({ name, difference: true });
  }, 240_000);
});
