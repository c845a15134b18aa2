/** Plans are pure functions of what is known: their printouts are kept as golden files under test/golden/plans. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../engine/errors.ts';
import { explain } from '../../engine/explain.ts';
import type { DevicePlan } from '../../engine/physical-plan.ts';
import { checkAlsParams } from '../../operators/als-params.ts';
import { planAls } from '../../operators/als-plan.ts';
import { ALL_ROWS, chooseSolver } from '../../operators/solver-choice.ts';

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
