import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explain } from '../../engine/plan/explain.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { chooseAlgorithm } from '../../api/training/algorithm-choice.ts';
import { schedulesFor } from '../../operators/sgd/schedules/choose-schedule.ts';
import { convergenceReport } from '../../operators/sgd/schedules/convergence.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';
import { planSgd } from '../../operators/sgd/plan.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import type { ScheduleProblem, SgdSchedule } from '../../operators/sgd/schedules/schedule.ts';
import { cpuInfo } from '../support/devices/device-info.ts';
import { undamped } from '../support/settings.ts';

const sgdParams = (params: Parameters<typeof checkSgdParams>[0]) =>
  checkSgdParams({ biases: false, ...params });

const cpu: PlanDevices = { compute: [cpuInfo], host: cpuInfo };

const movielens = {
  users: 138_493,
  items: 27_278,
  ratings: 18_000_000,
  testRatings: 2_000_000,
  input: 'parquet-source > select-ratings',
};

const scheduleFor = (problem: ScheduleProblem, params: SgdParams, device = cpuInfo) =>
  schedulesFor(problem, params, [device]).next().value as SgdSchedule;

const golden = (name: string) => join(import.meta.dirname, '../golden/plans', `${name}.txt`);

describe('the plan of sgd', () => {
  it.each([
    ['movielens-sgd-rank-32', { rank: 32, regParam: 0.05 }],
    [
      'movielens-sgd-rank-128-biases',
      {
        rank: 128,
        ...undamped,
        regParam: undefined,
        regParamUsers: 0.02,
        regParamItems: 0.04,
        rate: 'adagrad' as const,
        earlyStop: 3,
      },
    ],
    ['movielens-sgd-hogwild', { rank: 32, schedule: 'hogwild' as const, rate: 'bold' as const }],
    ['movielens-sgd-wavefront', { rank: 32, schedule: 'wavefront' as const, rate: 'constant' as const }],
  ])('prints as %s.txt', async (name, params) => {
    await expect(`${explain(planSgd(movielens, sgdParams(params), cpu))}\n`).toMatchFileSnapshot(
      golden(name),
    );
  });

  it('counts two versions of both sides, and three with an early stop', () => {
    const version = 128 * (movielens.users + movielens.items);
    expect(planSgd(movielens, sgdParams({ rank: 32 }), cpu).memory.cpu).toBe(2 * version);
    expect(planSgd(movielens, sgdParams({ rank: 32, earlyStop: 1 }), cpu).memory.cpu).toBe(3 * version);
  });

  it('refuses factors that do not fit: two versions of both sides', () => {
    expect(() => planSgd({ ...movielens, users: 2_000_000 }, sgdParams({ rank: 512 }), cpu)).toThrow(
      /the factors need .* but device cpu has 4\.0 GiB/,
    );
    const many: PlanDevices = { compute: [{ ...cpuInfo, parallelism: 32 }], host: cpuInfo };
    expect(() =>
      planSgd({ users: 10 ** 9, items: 10 ** 8, ratings: 10 ** 11 }, sgdParams({ rank: 64 }), many),
    ).toThrow(/the factors need 524\.5 GiB/);
  });

  it('has the same grid for up to four workers, then twice as many bands as workers, and a band of columns that fits the cache', () => {
    const grid = (parallelism: number, rank = 8) => {
      const { rowBands, columnBands } = scheduleFor(movielens, sgdParams({ rank }), {
        ...cpuInfo,
        parallelism,
      });
      return [rowBands, columnBands];
    };
    expect([1, 2, 4].map((workers) => grid(workers))).toEqual([
      [8, 8],
      [8, 8],
      [8, 8],
    ]);
    expect(grid(16)).toEqual([32, 32]);
    expect(grid(2, 512)).toEqual([8, 54]);
    expect(scheduleFor({ users: 10, items: 90 }, sgdParams({}))).toMatchObject({
      rows: 'items',
      rowBands: 8,
      columnBands: 8,
    });
    expect(scheduleFor({ users: 3, items: 90 }, sgdParams({ schedule: 'wavefront' }))).toMatchObject({
      rows: 'items',
      rowBands: 2,
      columnBands: 3,
    });
  });
});

describe('the convergence of sgd', () => {
  const schedule = (name: 'hogwild' | 'blocks' | 'wavefront', parallelism: number, problem = movielens) =>
    scheduleFor(problem, sgdParams({ schedule: name }), { ...cpuInfo, parallelism });
  // The paper's Hugewiki: min(m, n) = 40k and s = 768 converge in 2 x 2 blocks and fail in 4 x 4.
  const hugewiki = { users: 50_082_603, items: 39_780, ratings: 3_069_817_980 };

  it('of Hogwild! asks for s below a twentieth of the shorter side', () => {
    const report = (workers: number) => convergenceReport(hugewiki, schedule('hogwild', workers));
    expect(report(256)).toMatchObject({ workers: 256, leastSide: 39_780, bound: 1989 });
    expect(report(256).warning).toBeUndefined();
    const split = (i: number) =>
      convergenceReport(hugewiki, { ...schedule('hogwild', 768), rowBands: i, columnBands: i }).warning;
    expect([1, 2, 4].map((i) => split(i) !== undefined)).toEqual([false, false, true]);
  });

  it('counts expected collisions exactly where the items are known: s Σ (n_v / Nz)²', () => {
    const problem = { users: 100, items: 3, ratings: 10, itemCounts: [5, 3, 2] };
    expect(convergenceReport(problem, schedule('hogwild', 4)).collisionRate).toBeCloseTo(4 * 0.38);
    expect(
      convergenceReport({ ...problem, itemCounts: undefined }, schedule('hogwild', 4)).collisionRate,
    ).toBeCloseTo(4 / 3);
  });

  it('of blocks has no collisions, and warns of grids with fewer than twice as many bands as workers', () => {
    expect(convergenceReport(movielens, schedule('blocks', 2))).toMatchObject({
      collisionRate: 0,
      workers: 1,
    });
    expect(convergenceReport(movielens, schedule('blocks', 2)).warning).toBeUndefined();
    expect(convergenceReport(movielens, schedule('wavefront', 2)).warning).toBeUndefined();
    expect(
      convergenceReport(
        { users: 5, items: 3, ratings: 9 },
        schedule('blocks', 2, { ...movielens, users: 5, items: 3 }),
      ).warning,
    ).toMatch(/fewer than 2 s = 4 bands/);
  });
});

describe('algorithm auto', () => {
  const choose = (rank: number, more = {}) =>
    chooseAlgorithm({ ...movielens, rank, cgSteps: 6, ...more }, cpuInfo);

  it('takes ALS at small ranks and SGD at large ones, earlier with a target, and gives the figures', () => {
    expect(choose(10).algorithm).toBe('als');
    expect(choose(64).algorithm).toBe('sgd');
    expect([choose(20).algorithm, choose(20, { targetRmse: 0.8 }).algorithm]).toEqual(['als', 'sgd']);
    expect(choose(64).reason).toMatch(
      /an iteration of ALS takes about \d\.\d\d s, 2 epochs of SGD, which do as much, 0\.\d\d s; sgd must be 1\.5 times cheaper/,
    );
  });

  it('takes ALS where rows are short', () => {
    expect(choose(64, { targetRmse: 0.8, ratings: 1_000_000 }).algorithm).toBe('als');
  });
});
