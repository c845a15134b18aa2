/** Training by SGD on a GPU from end to end, on the software adapter. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { computeDevice } from '../../../engine/run/devices.ts';
import type { GpuDevice } from '../../../gpu/device.ts';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import {
  CapacityError,
  chooseTrainer,
  DeviceLostError,
  LostTrainingError,
  type Model,
  type ProgressEvent,
  Session,
  SGD,
  type SgdOptions,
  UsageError,
} from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { isDeep } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { plantedRatings } from '../../support/planted.ts';
import { ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';

const planted = plantedRatings(3, 150, 90, 6000);
const [train, held] = [planted.slice(500), planted.slice(0, 500)];
const options: SgdOptions = { rank: 4, biases: true, regParam: 0.05, learningRate: 0.1, maxIter: 8, seed: 2 };

let cpu: Session;
let gpu: Session;
beforeAll(async () => {
  cpu = await Session.create({ device: 'cpu', workers: 2 });
  if (!noGpu) gpu = await Session.create({ device: 'gpu', workers: 2 });
});
afterAll(async () => {
  await cpu.close();
  await gpu?.close();
});
afterEach(() => vi.restoreAllMocks());

const fit = (
  session: Session,
  more: SgdOptions,
  rows: readonly Triple[] = train,
  run: { onEvent?: (event: ProgressEvent) => void; signal?: AbortSignal } = {},
) =>
  new SGD({ ...options, ...more }).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(held)),
    ...run,
  });
const last = (model: Model) => model.training!.iterations.at(-1)!;
/**
 * The lowest test error. The last one of a run that stops early depends on the order in which threads step.
 */
const lowest = (model: Model) => Math.min(...model.training!.iterations.map(({ testRmse }) => testRmse!));
const factorsOf = (model: Model) =>
  [model.userFactors, model.itemFactors].map(
    (batch) => batch.data.children[1].children[0].values as Float32Array,
  );

describe.skipIf(noGpu)('SGD on a GPU', () => {
  it.each<SgdOptions>([
    { schedule: 'tile', precision: 'f32' },
    { schedule: 'hogwild' },
    { schedule: 'wavefront' },
    { schedule: 'tile', rate: 'adagrad', learningRate: 0.2, rank: 20 },
    { schedule: 'auto', biases: false, learningRate: 0.15, earlyStop: 2 },
  ])('ends near the result of a CPU: %j', async (more) => {
    const [expected, got] = [
      await fit(cpu, { ...more, schedule: 'blocks', precision: 'auto' }),
      await fit(gpu, more),
    ];
    expect(Math.abs(lowest(got) - lowest(expected))).toBeLessThan(0.02);
    expect(last(got).loss).toBeLessThan(got.training!.iterations[0].loss);
    const whole = gpu.from(ratingBatches(train));
    if (more.earlyStop === undefined)
      expect((await got.evaluate(whole)).rmse).toBeCloseTo(last(got).trainRmse!, 4);
    const { plan } = got.training!;
    expect(plan.devices.map(({ kind }) => kind)).toEqual(['gpu', 'cpu']);
    expect(stageNamed(plan, 'sgd-epoch')).toMatchObject({
      at: ['gpu:0'],
      tasks: 1,
      kernel: expect.stringMatching(new RegExp(` ${more.precision ?? 'f16'}$`)),
    });
    // One task an epoch, after the copies of factors.
    expect(plan.measured!['sgd-epoch']).toMatchObject({
      runs: got.training!.iterations.length,
      rows: got.training!.iterations.length * train.length,
    });
  });

  it('by waves gives the same bits for permuted rows and a seed, in any storage of factors', async () => {
    for (const more of [
      { precision: 'f16', rate: 'adagrad' },
      { precision: 'f32', biases: false },
    ] as const) {
      const all = { ...more, schedule: 'wavefront', maxIter: 2 } as const;
      const first = await fit(gpu, all);
      expect(factorsOf(await fit(gpu, all, shuffled(train, 9)))).toEqual(factorsOf(first));
      expect(factorsOf(await fit(gpu, { ...all, seed: 5 }))).not.toEqual(factorsOf(first));
    }
  });

  it('learns ratings far from 0 as well as others', async () => {
    // Without biases the mean stays in the ratings: float16 holds their differences to the mean, but not the
    // ratings.
    const far = train.map((row) => ({ ...row, rating: row.rating + 20_000 }));
    const small = {
      biases: false,
      precision: 'f32',
      regParam: 0,
      rate: 'constant',
      learningRate: 1e-5,
      maxIter: 4,
    } as const;
    const [tiles, waves] = await Promise.all(
      (['tile', 'wavefront'] as const).map((schedule) =>
        new SGD({ ...options, ...small, schedule }).fit(gpu.from(ratingBatches(far))),
      ),
    );
    expect(last(waves).trainRmse!).toBeLessThan(waves.training!.iterations[0].trainRmse!);
    expect(last(tiles).trainRmse! / last(waves).trainRmse!).toBeCloseTo(1, 1);
  });

  it('updates a model with new ratings, there as on the CPU', async () => {
    const base = await fit(cpu, { maxIter: 4 });
    const late = plantedRatings(3, 160, 90, 900).filter(({ user }) => user >= 100);
    const updated = await Promise.all(
      [cpu, gpu].map(async (session) => {
        const model = await base.update(session.from(ratingBatches(late)), { learningRate: 0.02 });
        return {
          device: model.training!.plan.devices[0].kind,
          rmse: (await model.evaluate(session.from(ratingBatches(late)))).rmse,
          users: model.userCount,
        };
      }),
    );
    expect(updated.map(({ device }) => device)).toEqual(['cpu', 'gpu']);
    expect(updated[1].users).toBe(updated[0].users);
    expect(Math.abs(updated[1].rmse - updated[0].rmse)).toBeLessThan(0.01);
  });

  it('refuses parameters that cannot be used on the device', async () => {
    const ratings = (session: Session) => session.from(ratingBatches(train));
    await expect(new SGD({ schedule: 'tile' }).fit(ratings(cpu))).rejects.toThrow(UsageError);
    await expect(new SGD({ precision: 'f16' }).fit(ratings(cpu))).rejects.toThrow(
      /precision f16 cannot be used on the CPU/,
    );
    await expect(
      new SGD({ schedule: 'tile', rank: 512, precision: 'f32', biases: false }).plan(ratings(gpu)),
    ).resolves.toBeDefined();
    await using tight = await Session.create({ device: 'gpu', workers: 1, deviceMemory: 100_000 });
    await expect(new SGD({ rank: 64 }).fit(ratings(tight))).rejects.toBeInstanceOf(CapacityError);
  });

  it('is chosen by measured costs', async () => {
    const { trainer, reason } = await chooseTrainer(gpu.from(ratingBatches(train)), {
      rank: 100,
      targetRmse: 0.5,
    });
    expect(trainer).toBeInstanceOf(SGD);
    expect(reason).toMatch(/^algorithm auto: sgd; an iteration of ALS takes about .*, 1\.5 epochs of SGD/);
  });

  it('that is lost keeps the last model that was copied', async () => {
    await using session = await Session.create({ device: 'gpu', workers: 1 });
    const device = computeDevice(session.context().executor) as GpuDevice;
    const run = device.run.bind(device);
    let epochs = 0;
    device.run = async (task, signal) => {
      // Not awaited, so that calls keep their order.
      if (task.kernel === 'sgd-waves' && ++epochs === 4) void device.lose();
      return run(task, signal);
    };
    let clock = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (clock += 60_000));
    const error = await fit(session, { schedule: 'wavefront' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LostTrainingError);
    const { model, iteration, exitCode } = error as LostTrainingError;
    expect(exitCode).toBe(5);
    expect(String(error)).toMatch(
      /the GPU swiftshader\S* was lost during .*; the model of iteration \d is kept/,
    );
    vi.restoreAllMocks();
    expect(factorsOf(model)).toEqual(
      factorsOf(await fit(gpu, { schedule: 'wavefront', maxIter: iteration })),
    );
    await expect(fit(session, {})).rejects.toBeInstanceOf(DeviceLostError);
  });
});

const movielens = noGpu || !isDeep ? undefined : dataFolder('ml-latest-small');

describe('SGD on real ratings', () => {
  it.skipIf(!movielens)(
    'ends on a GPU within 0.01 of blocks on the CPU on ml-latest-small, float16 within 0.002 of float32',
    async () => {
      const rmse = async (session: Session, more: SgdOptions) => {
        const [known, unseen] = session.read
          .parquet(join(movielens as string, 'ratings.parquet'))
          .randomSplit([0.9, 0.1], { seed: 1 });
        return (
          await (
            await new SGD({ rank: 8, biases: true, maxIter: 5, seed: 1, ...more }).fit(known)
          ).evaluate(unseen)
        ).rmse;
      };
      const blocks = await rmse(cpu, {});
      const exact = await rmse(gpu, { schedule: 'tile', precision: 'f32' });
      expect(Math.abs((await rmse(gpu, { schedule: 'tile', precision: 'f16' })) - exact)).toBeLessThan(0.002);
      for (const found of [
        exact,
        await rmse(gpu, { schedule: 'hogwild' }),
        await rmse(gpu, { schedule: 'wavefront' }),
      ])
        expect(Math.abs(found - blocks)).toBeLessThan(0.01);
    },
  );
});
