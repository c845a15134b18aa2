/** Plans of SGD on a GPU, as functions of the problem and of the GPU's properties; they need no GPU. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { explain } from '../../../engine/plan/explain.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { chooseAlgorithm } from '../../../api/training/algorithm-choice.ts';
import { schedulesFor } from '../../../operators/sgd/schedules/choose-schedule.ts';
import { convergenceReport } from '../../../operators/sgd/schedules/convergence.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd } from '../../../operators/sgd/plan.ts';
import type { ScheduleProblem, SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { cpuInfo, h200Info as h200 } from '../../support/devices/device-info.ts';
import { undamped } from '../../support/settings.ts';

/** Plans without what biases add, unless a case asks for them. */
const sgdParams = (params: Parameters<typeof checkSgdParams>[0]) =>
  checkSgdParams({ biases: false, ...params });

const netflix = { users: 480_189, items: 17_770, ratings: 99_072_112 };

const scheduleFor = (problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[]) =>
  schedulesFor(problem, params, devices).next().value as SgdSchedule;

const golden = (name: string) => join(import.meta.dirname, '../../golden/plans', `${name}.txt`);

describe('the schedule of sgd on a GPU', () => {
  const schedule = (params: Partial<SgdParams>, problem: object = {}, device = h200) =>
    scheduleFor({ ...netflix, ...problem }, sgdParams({ rank: 128, ...params }), [device]);

  it('is tiles where the columns fit them: one a multiprocessor, in whole waves', () => {
    expect(schedule({})).toMatchObject({
      kind: 'tile',
      rows: 'users',
      workers: 132 * 192,
      precision: 'f16',
      tile: { tiles: 132, places: 135, lanes: 4, threads: 768, precision: 'f16', arithmetic: 'f16' },
    });
    expect(schedule({ precision: 'f32' }).tile).toMatchObject({
      tiles: 264,
      places: 68,
      precision: 'f32',
      arithmetic: 'f32',
    });
    expect(schedule({ rank: 512 }).tile).toMatchObject({ tiles: 396, places: 45, lanes: 16 });
    expect(schedule({ rank: 126, ...undamped, rate: 'adagrad' }).tile).toMatchObject({
      tiles: 132,
      places: 135,
      lanes: 4,
    });
  });

  it('has teams for the arithmetic of the GPU, whose threads have whole pieces of a row where that is faster', () => {
    const teams = (rank: number, device = h200) => {
      const { lanes, threads, arithmetic } = schedule({ rank }, {}, device).tile ?? {};
      return [lanes, threads, arithmetic];
    };
    expect([16, 32, 64, 80, 96, 128, 144, 256].map((rank) => teams(rank))).toEqual(
      [
        [1, 512],
        [2, 512],
        [4, 1024],
        [2, 512],
        [4, 768],
        [4, 768],
        [4, 512],
        [8, 768],
      ].map((one) => [...one, 'f16']),
    );
    const { limits } = h200;
    if (limits === undefined) throw new Error('a GPU has limits');
    expect(teams(128, { ...h200, limits: { ...limits, float16: false } })).toEqual([8, 1024, 'f32']);
    expect(teams(64, { ...h200, limits: { ...limits, teamLanes: 1 } })).toEqual([1, 512, 'f16']);
  });

  it('is Hogwild! where they do not, and as requested', () => {
    const many = { users: 3_000_000, items: 2_000_000 };
    expect(schedule({}, many)).toMatchObject({
      kind: 'hogwild',
      workers: 8448,
      lanes: 8,
      precision: 'f16',
      reasons: [
        expect.stringMatching(/^schedule auto: hogwild, since the factors of the columns do not fit/),
        expect.any(String),
      ],
    });
    expect(schedule({}, {}, { ...h200, limits: undefined }).kind).toBe('hogwild');
    expect(schedule({ schedule: 'hogwild' }, { users: 9724, items: 610, ratings: 90_000 })).toMatchObject({
      kind: 'hogwild',
      workers: 305,
    });
    expect(schedule({ schedule: 'hogwild' }, { users: 2, items: 1, ratings: 2 }).workers).toBe(1);
    expect(() => schedule({ schedule: 'tile' }, many)).toThrow(
      /schedule tile cannot be used: 2,000,000 columns of 128 features do not fit the workgroups of this GPU/,
    );
  });

  it('is not tiles on a CPU', () => {
    expect(() => schedule({ schedule: 'tile' }, {}, cpuInfo)).toThrow(
      /schedule tile cannot be used on the CPU/,
    );
  });
});

describe('the plan of sgd on a GPU', () => {
  const plan = (params: Partial<SgdParams>, on = h200, problem = netflix) =>
    planSgd(problem, sgdParams({ rank: 128, ...params }), { compute: [on], host: cpuInfo });

  it.each([
    ['netflix-sgd-tile-gpu', { regParam: 0.05 }],
    [
      'netflix-sgd-hogwild-gpu',
      { schedule: 'hogwild' as const, precision: 'f32' as const, rate: 'adagrad' as const },
    ],
    ['netflix-sgd-wavefront-gpu', { schedule: 'wavefront' as const, ...undamped }],
  ])('prints as %s.txt', async (name, params) => {
    await expect(`${explain(plan(params))}\n`).toMatchFileSnapshot(golden(name));
  });

  it('refuses what does not fit the device, or one of its buffers', () => {
    expect(() => plan({ schedule: 'tile' }, { ...h200, capacityBytes: 2 ** 30 })).toThrow(
      /the factors and ratings need .* but device gpu:0 has 1\.0 GiB/,
    );
    expect(() => plan({ schedule: 'tile' }, { ...h200, bindingBytes: 2 ** 28 })).toThrow(
      /99,072,112 ratings need 755\.9 MiB .* in one buffer but device gpu:0 binds at most 256\.0 MiB/,
    );
    const few = { ...netflix, items: 300 };
    expect(() =>
      plan({ rank: 512, schedule: 'tile' }, { ...h200, bindingBytes: 900 * 2 ** 20 }, few),
    ).toThrow(/the factors of 480,189 rows need 937\.9 MiB .* in one buffer/);
    // Rows stay on their device in any schedule.
    expect(() => plan({}, { ...h200, capacityBytes: 2 ** 29 }, few)).toThrow(
      /the factors and ratings need 7\d\d\.\d MiB .* but device gpu:0 has 512\.0 MiB/,
    );
  });
});

describe('the convergence of sgd on a GPU', () => {
  it('allows four times as many teams as columns, and advises waves beyond', () => {
    const schedule = scheduleFor(netflix, sgdParams({ rank: 8 }), [h200]);
    expect(convergenceReport(netflix, schedule)).toMatchObject({ leastSide: 17_770, bound: 4 * 17_770 });
    expect(convergenceReport(netflix, schedule).warning).toBeUndefined();
    expect(convergenceReport(netflix, { ...schedule, workers: 80_000 }).warning).toMatch(
      /^s = 80000 workers are more than four times min.*use the schedule wavefront$/,
    );
    const waves = scheduleFor(netflix, sgdParams({ rank: 8, schedule: 'wavefront' }), [h200]);
    expect(convergenceReport(netflix, waves)).toMatchObject({ collisionRate: 0, workers: 1 });
    expect(convergenceReport(netflix, waves).warning).toBeUndefined();
  });
});

describe('algorithm auto on a GPU', () => {
  it('takes SGD for a target, and without one where it saves a second', () => {
    const onGpu = (rank: number, more = {}) =>
      chooseAlgorithm({ ...netflix, rank, cgSteps: 6, ...more }, h200);
    expect([onGpu(100).algorithm, onGpu(100, { targetRmse: 0.82 }).algorithm, onGpu(400).algorithm]).toEqual([
      'als',
      'sgd',
      'sgd',
    ]);
    expect(onGpu(100).reason).toMatch(
      /an iteration of ALS takes about 31\.3 ms, 1\.5 epochs of SGD, which do as much, 10\.8 ms; sgd must save 1 s in ten iterations, since ALS/,
    );
    // Columns that fit no tiles are stepped by Hogwild!, which is slower.
    expect(onGpu(100, { users: 3_000_000, items: 2_000_000, targetRmse: 0.82 }).algorithm).toBe('als');
  });

  it('takes ALS where rows are short', () => {
    expect(
      chooseAlgorithm({ ...netflix, ratings: 1_000_000, rank: 64, cgSteps: 6, targetRmse: 0.8 }, h200)
        .algorithm,
    ).toBe('als');
  });
});
