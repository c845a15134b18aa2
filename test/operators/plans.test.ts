/** Plans are pure functions: their printouts are golden files under test/golden/plans. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../engine/errors.ts';
import { explain } from '../../engine/plan/explain.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { ALL_ROWS, chooseSolver } from '../../operators/als/solver-choice.ts';
import { cpuInfo, h200Info } from '../support/devices/device-info.ts';
import { undamped } from '../support/settings.ts';

/** Plans without what biases add, unless a case asks for them. */
const alsParams = (params: Parameters<typeof checkAlsParams>[0]) =>
  checkAlsParams({ biases: false, start: 'spark', ...params });

const cpu: PlanDevices = { compute: [cpuInfo], host: cpuInfo };
const on = (...compute: DeviceInfo[]): PlanDevices => ({ compute, host: cpuInfo });

const movielens = {
  users: 138_493,
  items: 27_278,
  ratings: 18_000_000,
  testRatings: 2_000_000,
  input: 'parquet-source > select-ratings',
};

const golden = (name: string) => join(import.meta.dirname, '../golden/plans', `${name}.txt`);

describe('the plan of als', () => {
  it('prints ratings and parts of factors in files as movielens-rank-32-in-files.txt', async () => {
    const side = { fixed: 'parts', factors: 'spill', ratings: 'spill', sums: 'vectors' } as const;
    const grid = { users: { ...side, q: 3 }, items: { ...side, q: 2 } };
    const plan = planAls(movielens, alsParams({ rank: 32, solver: 'cg' }), cpu, undefined, { grid });
    await expect(`${explain(plan)}\n`).toMatchFileSnapshot(golden('movielens-rank-32-in-files'));
  });

  it.each([
    ['movielens-rank-10', { rank: 10 }],
    ['movielens-rank-32-early-stop', { rank: 32, earlyStop: 3 }],
    ['movielens-rank-64', { rank: 64, regParam: 0.05 }],
    ['movielens-rank-100-cholesky', { rank: 100, solver: 'cholesky' as const }],
    [
      'movielens-rank-64-implicit',
      { rank: 64, implicitPrefs: true, alpha: 40, unobservedWeight: 0.1, cgSteps: 3 },
    ],
    [
      'movielens-rank-32-implicit-early-stop',
      { rank: 32, implicitPrefs: true, earlyStop: 2, earlyStopMetric: 'ndcg@20' as const },
    ],
    ['movielens-rank-32-nonnegative', { rank: 32, ...undamped, nonnegative: true }],
  ])('prints as %s.txt', async (name, params) => {
    await expect(`${explain(planAls(movielens, alsParams(params), cpu))}\n`).toMatchFileSnapshot(
      golden(name),
    );
  });

  const attributes = {
    items: { features: 1200, entries: 190_000 },
    users: { features: 40, entries: 500_000 },
  };

  it.each([
    ['movielens-rank-64-attributes', { rank: 64, biases: true }],
    ['movielens-rank-64-implicit-attributes', { rank: 64, implicitPrefs: true, alpha: 40 }],
    ['movielens-rank-64-attributes-gpu', { rank: 64 }],
    ['movielens-rank-64-attributes-2-gpus', { rank: 64, partitionUsers: '1,2', partitionItems: '1,2' }],
  ])('with attributes prints as %s.txt', async (name, params) => {
    const cards = [h200Info, { ...h200Info, place: 'gpu:1' }];
    const devices = name.endsWith('gpus') ? on(...cards) : name.endsWith('gpu') ? on(h200Info) : cpu;
    const plan = planAls({ ...movielens, attributes }, alsParams(params), devices);
    await expect(`${explain(plan)}\n`).toMatchFileSnapshot(golden(name));
  });

  it.each(['vectors', 'partial-equations'] as const)(
    'refuses attributes with sums of %s',
    (partitionSums) => {
      const params = alsParams({ partitionSums, solver: 'cg' });
      expect(() => planAls({ ...movielens, attributes }, params, cpu)).toThrow(
        `partitionSums ${partitionSums} cannot be used with attributes`,
      );
    },
  );

  it('on a GPU prints as netflix-rank-100-gpu.txt', async () => {
    const choice = (name: string, deviceBytes: number) => ({
      variant: name,
      precision: 'f16' as const,
      ratingScale: 1,
      reason: `kernel ${name}, by rule`,
      deviceBytes,
    });
    const choices = { users: choice('tensor-fused', 3e8), items: choice('tensor', 5e8) };
    const plan = planAls(
      { users: 480_189, items: 17_770, ratings: 99_072_112, testRatings: 1_408_395 },
      alsParams({ rank: 100, regParam: 0.05 }),
      on({ ...h200Info, description: 'a card; f16, subgroups, tensor' }),
      choices,
    );
    await expect(`${explain(plan)}\n`).toMatchFileSnapshot(golden('netflix-rank-100-gpu'));
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  it('on a GPU at a rank without A prints as netflix-rank-2048-gpu.txt', async () => {
    const choice = {
      variant: 'vectors-f16',
      precision: 'f16' as const,
      ratingScale: 1,
      reason: 'kernel vectors-f16 (CG by vectors, without A, θ in float16), by rule',
      deviceBytes: 4e9,
      tellsLoss: true,
    };
    const plan = planAls(
      { users: 480_189, items: 17_770, ratings: 99_072_112, testRatings: 1_408_395 },
      alsParams({ rank: 2048, biases: true }),
      on({ ...h200Info, description: 'a card; f16, subgroups, tensor' }),
      { users: choice, items: choice },
    );
    await expect(`${explain(plan)}\n`).toMatchFileSnapshot(golden('netflix-rank-2048-gpu'));
  });

  it('on two GPUs exchanges users in float16 where kernels read float16, or 8 bits, which are rounded from it', () => {
    const choice = (precision: 'f32' | 'f16' | 'int8') => ({
      variant: 'some',
      precision,
      ratingScale: 1,
      reason: '',
      deviceBytes: 0,
    });
    const halves = (precision: 'f32' | 'f16' | 'int8') => {
      const plan = planAls(
        { users: 480_189, items: 17_770, ratings: 99_072_112 },
        alsParams({ rank: 200, biases: false }),
        on(h200Info, { ...h200Info, place: 'gpu:1' }),
        { users: choice(precision), items: choice(precision) },
      );
      return plan.datasets.filter(({ half }) => half === 'only').map(({ name }) => name);
    };
    expect(halves('f16')).toHaveLength(1);
    expect(halves('int8')).toEqual(halves('f16'));
    expect(halves('f32')).toEqual([]);
  });

  it('refuses data beyond one buffer of a GPU', () => {
    const plan = () =>
      planAls(
        { users: 1000, items: 1000, ratings: 50_000_000 },
        alsParams({ partitionUsers: '1,1', partitionItems: '1,1' }),
        on({ ...h200Info, bindingBytes: 2 ** 27 }),
      );
    expect(plan).toThrow(CapacityError);
    expect(plan).toThrow(
      '50,000,000 ratings need 190.7 MiB (200000000 bytes) in one buffer but device gpu:0 binds at most 128.0 MiB (134217728 bytes)',
    );
    const cut = planAls(
      { users: 1000, items: 1000, ratings: 50_000_000 },
      alsParams({}),
      on({ ...h200Info, bindingBytes: 2 ** 27 }),
    );
    expect(cut.choices.grid).toMatchObject({
      users: { q: 2, fixed: 'whole' },
      items: { q: 2, fixed: 'whole' },
    });
    const grid = {
      users: { q: 2, fixed: 'whole', factors: 'device', ratings: 'device' },
      items: { q: 3, fixed: 'parts', factors: 'device', ratings: 'device' },
    } as const;
    const equations = () =>
      planAls(
        { users: 500_000, items: 6000, ratings: 50_000_000 },
        alsParams({ rank: 100, biases: false }),
        on(h200Info),
        undefined,
        { grid },
      );
    expect(equations).toThrow('the normal equations of 250,000 rows need 4.8 GiB');
    expect(equations).toThrow(
      expect.objectContaining({
        details: expect.objectContaining({
          advice: expect.stringContaining('Cut that side into more parts'),
        }),
      }),
    );
  });

  it.each<[string, number, PlanDevices, RegExp]>([
    [
      'of memory',
      1e6,
      on({ ...h200Info, capacityBytes: 1e6 }),
      /^plan: no grid fits: needs about \d.* MiB at gpu:0, which has 976\.6 KiB; /,
    ],
    [
      'of a buffer',
      50_000_000,
      on({ ...h200Info, bindingBytes: 2 ** 20 }),
      /^plan: no grid fits: has buffers beyond the 1\.0 MiB that gpu:0 binds; with other parts/,
    ],
    [
      'of the numbers of ratings',
      2e10,
      { compute: [{ ...cpuInfo, capacityBytes: null }], host: cpuInfo },
      /^plan: no grid fits: has parts of more than 1,073,741,823 ratings; with other parts/,
    ],
  ])('names the bound %s that parts which are asked for are beyond', (_, ratings, devices, message) => {
    const plan = () =>
      planAls(
        { users: 100_000, items: 1000, ratings },
        alsParams({ partitionUsers: '2,2', partitionItems: '2,2' }),
        devices,
      );
    expect(plan).toThrow(CapacityError);
    expect(plan).toThrow(message);
  });

  it('prints the measures of a run beside the plan', async () => {
    const plan = planAls(movielens, alsParams({ rank: 8 }), cpu);
    const measured = {
      runs: 1280,
      rows: 272_780,
      bytesUp: 1.44e9,
      bytesDown: 0,
      milliseconds: 4321,
      wallMilliseconds: 2200,
    };
    await expect(`${explain({ ...plan, measured: { 'update-items': measured } })}\n`).toMatchFileSnapshot(
      golden('analyzed'),
    );
  });

  it('refuses factors that do not fit, with the bytes needed and had', () => {
    const plan = () =>
      planAls(
        { ...movielens, users: 10_000_000 },
        alsParams({ rank: 512, partitionUsers: '1,1', partitionItems: '1,1' }),
        cpu,
      );
    expect(plan).toThrow(CapacityError);
    expect(plan).toThrow(
      /the factors need .* \(41015865344 bytes\) but device cpu has 4\.0 GiB \(4294967296 bytes\)/,
    );
  });
});

describe('solver auto', () => {
  it('takes Cholesky for long rows at small ranks and CG for all at large ones', () => {
    const at = (rank: number) => chooseSolver(alsParams({ rank })).cgBelow;
    expect(at(8)).toBeLessThan(100);
    expect(at(32)).toBeLessThan(1000);
    expect(at(64)).toBe(ALL_ROWS);
    expect(at(512)).toBe(ALL_ROWS);
  });
});
