/** Plans are pure functions of what is known: their printouts are kept as golden files under test/golden/plans. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../engine/errors.ts';
import { explain } from '../../engine/explain.ts';
import type { DevicePlan } from '../../engine/plan/physical-plan.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan.ts';
import { chooseAlgorithm } from '../../operators/planner/algorithm-choice.ts';
import { chooseSchedule } from '../../operators/sgd/choose-schedule.ts';
import { convergenceReport } from '../../operators/sgd/convergence.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';
import { planSgd } from '../../operators/sgd/plan.ts';
import { ALL_ROWS, chooseSolver } from '../../operators/als/solver-choice.ts';

const device: DevicePlan = { name: 'cpu', kind: 'cpu', parallelism: 2, capacityBytes: 4 * 2 ** 30, description: '2 threads, WebAssembly relaxed-simd' };
const movielens = { users: 138_493, items: 27_278, ratings: 18_000_000, testRatings: 2_000_000, input: 'parquet-source > select-ratings' };
const golden = (name: string) => join(import.meta.dirname, '../golden/plans', `${name}.txt`);

describe('the plan of als', () => {
  it.each([
    ['movielens-rank-10', { rank: 10 }],
    ['movielens-rank-32-early-stop', { rank: 32, earlyStop: 3 }],
    ['movielens-rank-64', { rank: 64, regParam: 0.05 }],
    ['movielens-rank-100-cholesky', { rank: 100, solver: 'cholesky' as const }],
    ['movielens-rank-32-nonnegative', { rank: 32, biases: true, nonnegative: true }],
  ])('prints as %s.txt', async (name, params) => {
    await expect(`${explain(planAls(movielens, checkAlsParams(params), device))}\n`).toMatchFileSnapshot(golden(name));
  });

  it('on a GPU prints as netflix-rank-100-gpu.txt', async () => {
    const gpu: DevicePlan = { name: 'gpu', kind: 'gpu', parallelism: 1, capacityBytes: null, description: 'a card; f16, subgroups, tensor', bindingBytes: 2 ** 31 - 4, strideStep: 16 };
    const choice = (name: string, deviceBytes: number) => ({ variant: name, precision: 'f16' as const, ratingScale: 1, reason: `kernel ${name}, by rule`, deviceBytes });
    const choices = { users: choice('tensor-fused', 3e8), items: choice('tensor', 5e8) };
    const plan = planAls({ users: 480_189, items: 17_770, ratings: 99_072_112, testRatings: 1_408_395 }, checkAlsParams({ rank: 100, regParam: 0.05 }), gpu, { host: device, choices });
    await expect(`${explain(plan)}\n`).toMatchFileSnapshot(golden('netflix-rank-100-gpu'));
    expect(plan.stages.map(({ id }) => id)).toEqual(plan.stages.map((_, at) => at));
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  it('refuses what one buffer of a GPU does not hold', () => {
    const gpu: DevicePlan = { name: 'gpu', kind: 'gpu', parallelism: 1, capacityBytes: null, description: 'a card', bindingBytes: 2 ** 27, strideStep: 16 };
    const plan = () => planAls({ users: 1000, items: 1000, ratings: 50_000_000 }, checkAlsParams({}), gpu, { host: device });
    expect(plan).toThrow(CapacityError);
    expect(plan).toThrow('50,000,000 ratings need 190.7 MiB (200000000 bytes) in one buffer but device gpu binds at most 128.0 MiB (134217728 bytes)');
  });

  it('prints what a run measured beside what was planned', async () => {
    const plan = planAls(movielens, checkAlsParams({ rank: 8 }), device);
    const measured = { runs: 1280, rows: 272_780, bytesUp: 1.44e9, bytesDown: 0, milliseconds: 4321, wallMilliseconds: 2200 };
    await expect(`${explain({ ...plan, stages: plan.stages.map((stage) => (stage.name === 'update-items' ? { ...stage, measured } : stage)) })}\n`).toMatchFileSnapshot(golden('analyzed'));
  });

  it('is JSON and survives it', () => {
    const plan = planAls(movielens, checkAlsParams({ rank: 64 }), device);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  it("doesn't depend on the number of threads", () => {
    const stages = (parallelism: number) => planAls(movielens, checkAlsParams({}), { ...device, parallelism }).stages;
    expect(stages(64)).toEqual(stages(1));
  });

  it('refuses factors that do not fit, with the bytes needed and had', () => {
    const plan = () => planAls({ ...movielens, users: 10_000_000 }, checkAlsParams({ rank: 512 }), device);
    expect(plan).toThrow(CapacityError);
    expect(plan).toThrow(/the factors need .* \(41015865344 bytes\) but device cpu has 4\.0 GiB \(4294967296 bytes\)/);
  });
});

describe('solver auto', () => {
  it('takes Cholesky for long rows at small ranks and CG for all at large ones', () => {
    const at = (rank: number) => chooseSolver(checkAlsParams({ rank })).cgBelow;
    expect(at(8)).toBeLessThan(100);
    expect(at(32)).toBeLessThan(1000);
    expect(at(64)).toBe(ALL_ROWS);
    expect(at(512)).toBe(ALL_ROWS);
  });
});

describe('the plan of sgd', () => {
  it.each([
    ['movielens-sgd-rank-32', { rank: 32, regParam: 0.05 }],
    ['movielens-sgd-rank-128-biases', { rank: 128, biases: true, regParamUsers: 0.02, regParamItems: 0.04, rate: 'adagrad' as const, earlyStop: 3 }],
    ['movielens-sgd-hogwild', { rank: 32, schedule: 'hogwild' as const, rate: 'bold' as const }],
    ['movielens-sgd-wavefront', { rank: 32, schedule: 'wavefront' as const, rate: 'constant' as const }],
  ])('prints as %s.txt', async (name, params) => {
    await expect(`${explain(planSgd(movielens, checkSgdParams(params), device))}\n`).toMatchFileSnapshot(golden(name));
  });

  it('is JSON and survives it', () => {
    const plan = planSgd(movielens, checkSgdParams({ rank: 64 }), device);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  it('refuses factors that do not fit: two versions of both sides', () => {
    expect(() => planSgd({ ...movielens, users: 2_000_000 }, checkSgdParams({ rank: 512 }), device)).toThrow(/the factors need .* but device cpu has 4\.0 GiB/);
  });

  it('has the same grid for up to four workers, then twice as many bands as workers, and a band of columns that fits the cache', () => {
    const grid = (parallelism: number, rank = 8) => {
      const { rowBands, columnBands } = chooseSchedule(movielens, checkSgdParams({ rank }), { ...device, parallelism });
      return [rowBands, columnBands];
    };
    expect([1, 2, 4].map((workers) => grid(workers))).toEqual([[8, 8], [8, 8], [8, 8]]);
    expect(grid(16)).toEqual([32, 32]);
    expect(grid(2, 512)).toEqual([8, 54]);
    expect(chooseSchedule({ users: 10, items: 90 }, checkSgdParams({}), device)).toMatchObject({ rows: 'items', rowBands: 8, columnBands: 8 });
    expect(chooseSchedule({ users: 3, items: 90 }, checkSgdParams({ schedule: 'wavefront' }), device)).toMatchObject({ rows: 'items', rowBands: 2, columnBands: 3 });
  });
});

describe('the convergence of sgd', () => {
  const schedule = (name: 'hogwild' | 'blocks' | 'wavefront', parallelism: number, problem = movielens) => chooseSchedule(problem, checkSgdParams({ schedule: name }), { ...device, parallelism });
  // The paper's Hugewiki: min(m, n) = 40k and s = 768 converge in 2 x 2 blocks and fail in 4 x 4.
  const hugewiki = { users: 50_082_603, items: 39_780, ratings: 3_069_817_980 };

  it('of Hogwild! asks for s below a twentieth of the shorter side', () => {
    const report = (workers: number) => convergenceReport(hugewiki, schedule('hogwild', workers));
    expect(report(256)).toMatchObject({ workers: 256, leastSide: 39_780, bound: 1989 });
    expect(report(256).warning).toBeUndefined();
    const split = (i: number) => convergenceReport(hugewiki, { ...schedule('hogwild', 768), rowBands: i, columnBands: i }).warning;
    expect([1, 2, 4].map((i) => split(i) !== undefined)).toEqual([false, false, true]);
  });

  it('counts expected collisions exactly where the items are known: s Σ (n_v / Nz)²', () => {
    const problem = { users: 100, items: 3, ratings: 10, itemCounts: [5, 3, 2] };
    expect(convergenceReport(problem, schedule('hogwild', 4)).collisionRate).toBeCloseTo(4 * 0.38);
    expect(convergenceReport({ ...problem, itemCounts: undefined }, schedule('hogwild', 4)).collisionRate).toBeCloseTo(4 / 3);
  });

  it('of blocks has no collisions, and warns of grids with fewer than twice as many bands as workers', () => {
    expect(convergenceReport(movielens, schedule('blocks', 2))).toMatchObject({ collisionRate: 0, workers: 1 });
    expect(convergenceReport(movielens, schedule('blocks', 2)).warning).toBeUndefined();
    expect(convergenceReport(movielens, schedule('wavefront', 2)).warning).toBeUndefined();
    expect(convergenceReport({ users: 5, items: 3, ratings: 9 }, schedule('blocks', 2, { ...movielens, users: 5, items: 3 })).warning).toMatch(/fewer than 2 s = 4 bands/);
  });
});

describe('algorithm auto', () => {
  const choose = (rank: number, more = {}) => chooseAlgorithm({ ...movielens, rank, cgSteps: 6, ...more }, device);

  it('takes ALS at small ranks and SGD at large ones, earlier with a target, and tells the figures', () => {
    expect(choose(10).algorithm).toBe('als');
    expect(choose(64).algorithm).toBe('sgd');
    expect([choose(20).algorithm, choose(20, { targetRmse: 0.8 }).algorithm]).toEqual(['als', 'sgd']);
    expect(choose(64).reason).toMatch(/an iteration of ALS takes about \d\.\d\d s, 2 epochs of SGD, which do as much, 0\.\d\d s; sgd must be 1\.5 times cheaper/);
  });

  it('takes ALS where rows are short', () => {
    expect(choose(64, { targetRmse: 0.8, ratings: 1_000_000 }).algorithm).toBe('als');
  });
});
