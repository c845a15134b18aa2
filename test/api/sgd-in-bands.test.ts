/** SGD on more ratings than one block has: in bands of rows, each a block of its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { computeDevices } from '../../engine/run/devices.ts';
import type { Device } from '../../engine/run/device.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { partitionKey, type PartitionRef } from '../../engine/partition.ts';
import { GpuDevice } from '../../gpu/device.ts';
import {
  CancelledError,
  CapacityError,
  type FitOptions,
  Model,
  type PhysicalPlan,
  Session,
  SGD,
  type SgdOptions,
} from '../../index.ts';
import { blockLimit } from '../../operators/planner/sizes.ts';
import type { SgdSchedule } from '../../operators/sgd/schedules/schedule.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { plantedRatings } from '../support/planted.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const planted = plantedRatings(3, 300, 90, 9800);
const [train, held] = [planted.slice(500), planted.slice(0, 500)];
const usual = blockLimit.ratings;
const LIMIT = 2500;

let session: Session;
afterEach(() => {
  blockLimit.ratings = usual;
});
afterAll(() => (session as Session | undefined)?.close());

async function fit(
  limit: number,
  options: SgdOptions = {},
  run: FitOptions = {},
  rows = train,
): Promise<Model> {
  blockLimit.ratings = limit;
  return new SGD({ rank: 6, maxIter: 3, seed: 3, ...options }).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(held)),
    ...run,
  });
}

const factorsOf = ({ userFactors, itemFactors }: Model) =>
  [userFactors, itemFactors].map((batch) => batch.data.children[1].children[0].values as Float32Array);
const scheduleOf = (plan: PhysicalPlan) => plan.choices.schedule as unknown as SgdSchedule;
const measuresOf = ({ training }: Model) =>
  training!.iterations.map(({ loss, trainRmse, testRmse }) => [
    loss,
    trainRmse as number,
    testRmse as number,
  ]);
const last = (model: Model) => model.training!.iterations.at(-1)!;

describe('ratings that one block does not have, on a CPU', () => {
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });

  it.each<SgdOptions>([
    {},
    { biases: false },
    { biases: false, rate: 'adagrad', learningRate: 0.2 },
    { earlyStop: 1, regOffset: 0.2 },
    { schedule: 'blocks', regParamUsers: 0.02, regParamItems: 0.2 },
  ])('give the bits of one block: %j', async (options) => {
    const [bands, whole] = [await fit(LIMIT, options), await fit(usual, options)];
    expect(scheduleOf(bands.training!.plan)).toMatchObject({ rowBands: 8, inBands: true });
    expect(
      bands
        .training!.plan.datasets.filter(({ name }) => ['rows', 'ratings', 'tests'].includes(name))
        .map(({ parts }) => parts.length),
    ).toEqual([8, 8, 8]);
    expect(factorsOf(bands)).toEqual(factorsOf(whole));
    // Errors are summed in slices of each band.
    measuresOf(bands).forEach((measures, epoch) =>
      measures.forEach((value, k) =>
        expect(Math.abs(value / measuresOf(whole)[epoch][k] - 1)).toBeLessThan(1e-9),
      ),
    );
    expect(bands.training!.ratings).toBe(train.length);
  });

  it('give them where items are the rows, and where rows are fewer than usual bands', async () => {
    for (const rows of [
      train.map(({ user, item, rating }) => ({ user: item, item: user, rating })),
      train.filter(({ user }) => user < 100),
    ]) {
      const [bands, whole] = [
        await fit(1000, {}, { validation: undefined }, rows),
        await fit(usual, {}, { validation: undefined }, rows),
      ];
      expect(scheduleOf(bands.training!.plan).inBands).toBe(true);
      if (scheduleOf(bands.training!.plan).rowBands === 8) expect(factorsOf(bands)).toEqual(factorsOf(whole));
      else expect(Math.abs(last(bands).trainRmse! / last(whole).trainRmse! - 1)).toBeLessThan(0.02);
    }
  });

  it('go on from a checkpoint to the same bits', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bands-'));
    try {
      await fit(LIMIT, { maxIter: 2 }, { checkpointDir: folder, checkpointInterval: 1 });
      const [resumed, whole] = [
        await fit(LIMIT, { maxIter: 4 }, { checkpointDir: folder, checkpointInterval: 1, resume: true }),
        await fit(LIMIT, { maxIter: 4 }),
      ];
      expect(factorsOf(resumed)).toEqual(factorsOf(whole));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('are saved, loaded and judged as the model that was trained', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bands-'));
    try {
      const model = await fit(LIMIT);
      await model.save(join(folder, 'model'));
      const loaded = await Model.load(session, join(folder, 'model'));
      expect(factorsOf(loaded)).toEqual(factorsOf(model));
      expect((await loaded.evaluate(session.from(ratingBatches(train)))).rmse).toBeCloseTo(
        last(model).trainRmse!,
        4,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('have repeated pairs treated by the policy, band by band', async () => {
    const rows = [...train, ...train.slice(0, 700).map((one) => ({ ...one, rating: one.rating + 1 }))];
    const blocks = (limit: number) => {
      blockLimit.ratings = limit;
      return new SGD({ rank: 6, maxIter: 2, seed: 3, onDuplicates: 'mean' }).fit(
        session.from(ratingBatches(rows)),
      );
    };
    const [bands, whole] = [await blocks(LIMIT), await blocks(usual)];
    expect(bands.training!.ratings).toBe(whole.training!.ratings);
    expect(Math.abs(last(bands).loss / last(whole).loss - 1)).toBeLessThan(0.02);
    blockLimit.ratings = LIMIT;
    await expect(
      new SGD({ rank: 4, onDuplicates: 'error' }).fit(session.from(ratingBatches(rows))),
    ).rejects.toThrow(/repeat an earlier \(user, item\) pair/);
  });

  it('are refused where they must be one block, with figures', async () => {
    await expect(fit(LIMIT, { schedule: 'hogwild' })).rejects.toThrow(
      /schedule hogwild needs 7,469 ratings in one block, and a block has at most 2,500\. Leave the schedule out/,
    );
    await expect(fit(LIMIT, { schedule: 'wavefront' })).rejects.toThrow(CapacityError);
    await expect(fit(LIMIT, { earlyStop: 1, earlyStopMetric: 'ndcg@5' })).rejects.toThrow(CapacityError);
    const model = await fit(usual);
    blockLimit.ratings = LIMIT;
    await expect(model.update(session.from(ratingBatches(train)))).rejects.toThrow(
      /do not lie in one block, which tune, cross-validation and updates of a model need/,
    );
  });

  it('leave nothing behind a cancel, nor behind a failure', async () => {
    const before = hostMeter.now;
    const controller = new AbortController();
    await expect(
      fit(
        LIMIT,
        { maxIter: 10_000 },
        {
          signal: controller.signal,
          onEvent: (event) =>
            void (event.type === 'iteration' && event.iteration === 2 && controller.abort()),
        },
      ),
    ).rejects.toBeInstanceOf(CancelledError);
    expect(hostMeter.now).toBe(before);
    await expect(fit(LIMIT, { learningRate: 1e6, rate: 'constant' })).rejects.toThrow(
      /diverge|not finite|did not lower/,
    );
    expect(hostMeter.now).toBe(before);
    expect((await fit(LIMIT)).training!.iterations).toHaveLength(3);
  });
});

/** Of so many features that factors take as much memory as ratings. */
const onGpu: SgdOptions = { rank: 40, precision: 'f32', maxIter: 6 };

/** Forms of a run in bands on one GPU: by the memory that it has. */
const forms: [string, Partial<SgdSchedule['deviceBlocks']> & object, (full: number) => number | undefined][] =
  [
    ['all resident', { resident: true }, () => undefined],
    ['ratings staged', { resident: false }, (full) => 0.75 * full],
    ['ratings and factors staged', { resident: false, rowsStaged: true }, (full) => 0.4 * full],
  ];

describe.skipIf(noGpu)('ratings that one block does not have, on a GPU', () => {
  let whole: Model;
  let full: number;
  beforeAll(async () => {
    await (session as Session | undefined)?.close();
    session = await Session.create({ device: 'gpu', workers: 2 });
    whole = await fit(usual, onGpu);
    full = (await fit(LIMIT, { ...onGpu, maxIter: 1 })).training!.plan.memory['gpu:0'];
  }, 120_000);

  it.each(forms)(
    '%s',
    async (_, expected, bytes) => {
      const memoryBytes = bytes(full);
      const own = session;
      const folder = await mkdtemp(join(tmpdir(), 'bands-'));
      await using limited = memoryBytes === undefined ? undefined : await sessionWith(memoryBytes);
      session = limited ?? own;
      try {
        for (const options of [
          {},
          { biases: false, rate: 'adagrad', learningRate: 0.2, regOffset: 0.1, earlyStop: 5 },
        ] as const) {
          const model = await fit(LIMIT, { ...onGpu, ...options });
          const { plan } = model.training!;
          expect(scheduleOf(plan)).toMatchObject({
            kind: 'blocks',
            inBands: true,
            columnBands: 1,
            deviceBlocks: expected,
          });
          expect(scheduleOf(plan).rowBands).toBe(scheduleOf(plan).deviceBlocks!.bandsADevice);
          if (!('rate' in options))
            expect(Math.abs(last(model).testRmse! - last(whole).testRmse!)).toBeLessThan(0.02);
          expect((await model.evaluate(session.from(ratingBatches(train)))).rmse).toBeCloseTo(
            model.training!.iterations[model.training!.bestIteration - 1].trainRmse!,
            4,
          );
        }
        await fit(LIMIT, { ...onGpu, maxIter: 2 }, { checkpointDir: folder, checkpointInterval: 1 });
        const resumed = await fit(LIMIT, onGpu, {
          checkpointDir: folder,
          checkpointInterval: 1,
          resume: true,
        });
        expect(resumed.training!.iterations.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5, 6]);
        expect(Math.abs(last(resumed).testRmse! - last(whole).testRmse!)).toBeLessThan(0.02);
      } finally {
        session = own;
        await rm(folder, { recursive: true });
      }
    },
    180_000,
  );

  it('take the memory that is planned', async () => {
    const rows = randomRatings(72, 2400, 100, 60_000);
    const memoryOf = async (memoryBytes: number | undefined) => {
      await using limited = await sessionWith(memoryBytes);
      blockLimit.ratings = 16_000;
      const { plan } = (
        await new SGD({ rank: 24, maxIter: 3, biases: false, precision: 'f32' }).fit(
          limited.from(ratingBatches(rows, 5000)),
        )
      ).training!;
      return {
        form: scheduleOf(plan).deviceBlocks,
        planned: plan.memory['gpu:0'],
        measured: plan.measuredMemory!['gpu:0'],
      };
    };
    const resident = await memoryOf(undefined);
    const all = [resident, await memoryOf(0.8 * resident.planned), await memoryOf(0.3 * resident.planned)];
    expect(all.map(({ form }) => [form?.resident, form?.rowsStaged])).toEqual([
      [true, undefined],
      [false, undefined],
      [false, true],
    ]);
    for (const { planned, measured } of all) {
      expect(measured / planned).toBeGreaterThan(0.9);
      expect(measured / planned).toBeLessThan(1.1);
    }
  }, 120_000);

  it('whose factors of rows are larger than a buffer', async () => {
    await using limited = await sessionWith(undefined);
    const [device] = computeDevices(limited.context().executor);
    Object.assign(device, { info: { ...device.info, bindingBytes: 150 * 48 * 4 } });
    const model = await new SGD({ ...onGpu, seed: 3 }).fit(limited.from(ratingBatches(train)), {
      validation: limited.from(ratingBatches(held)),
    });
    expect(scheduleOf(model.training!.plan)).toMatchObject({
      columnBands: 1,
      deviceBlocks: { resident: true },
    });
    expect(scheduleOf(model.training!.plan).rowBands).toBeGreaterThan(1);
    expect(Math.abs(last(model).testRmse! - last(whole).testRmse!)).toBeLessThan(0.02);
  }, 60_000);

  it('leave host memory behind the first epoch where all stay on the GPU', async () => {
    const seen: number[] = [];
    const rows = randomRatings(5, 300, 200, 9000);
    await fit(
      LIMIT,
      { maxIter: 3 },
      {
        validation: undefined,
        onEvent: (event) => void (event.type === 'iteration' && seen.push(hostMeter.now)),
      },
      rows,
    );
    expect(seen).toHaveLength(3);
    for (const now of seen) expect(now).toBeLessThan(8 * rows.length);
  }, 60_000);

  it('leave nothing there behind a cancel in the middle of an epoch', async () => {
    await using limited = await sessionWith(undefined);
    const [device] = computeDevices(limited.context().executor);
    const put = new Map<string, { device: Device; ref: PartitionRef }>();
    const [run, puts, controller] = [device.run.bind(device), device.put.bind(device), new AbortController()];
    let blocks = 0;
    device.put = (ref, partition) => {
      put.set(partitionKey(ref), { device, ref });
      puts(ref, partition);
    };
    device.run = (task, signal) => {
      if (task.kernel === 'sgd-tiles' && ++blocks === 6) controller.abort();
      return run(task, signal);
    };
    blockLimit.ratings = LIMIT;
    await expect(
      new SGD({ rank: 6, maxIter: 50 }).fit(limited.from(ratingBatches(train)), {
        signal: controller.signal,
      }),
    ).rejects.toBeInstanceOf(CancelledError);
    for (const { device: at, ref } of put.values())
      await expect(at.fetch(ref)).rejects.toThrow('not on device');
  }, 60_000);
});

/** A session whose GPU has so many bytes. */
async function sessionWith(memoryBytes: number | undefined): Promise<Session> {
  const made = await Session.create({ device: 'cpu', workers: 2 });
  (made.context().executor.devices as Device[]).push(
    await GpuDevice.open({ memoryBytes: memoryBytes && Math.floor(memoryBytes), place: 'gpu:0' }),
  );
  return made;
}
