/** SGD on more ratings than one block has: in bands of rows, each a block of its own. */
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { partitionKey, type PartitionRef } from '../../engine/partition.ts';
import type { Device } from '../../engine/run/device.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { openGpuDevice } from '../../gpu/open-gpu-device.ts';
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
import { cpuSession } from '../support/cpu-session.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { plantedRatings } from '../support/planted.ts';
import { randomRatings, ratingBatches, type Triple } from '../support/ratings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { factorsOf } from '../support/model-values.ts';

const planted = plantedRatings(3, 300, 90, 9800);
const [train, held] = [planted.slice(500), planted.slice(0, 500)];
const usual = blockLimit.ratings;
const LIMIT = 2500;
const above = temporaryFolder();
let folder: string;
let folders = 0;
beforeEach(() => {
  folder = join(above, String(folders++));
});
afterEach(() => {
  blockLimit.ratings = usual;
});

/** Fits where a block has at most `limit` ratings. */
async function fitOn(
  session: Session,
  limit: number,
  options: SgdOptions = {},
  { rows = train, ...run }: FitOptions & { readonly rows?: readonly Triple[] } = {},
): Promise<Model> {
  blockLimit.ratings = limit;
  return new SGD({ rank: 6, maxIter: 3, seed: 3, ...options }).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(held)),
    ...run,
  });
}

const scheduleOf = (plan: PhysicalPlan) => plan.choices.schedule as unknown as SgdSchedule;
const last = (model: Model) => model.training!.iterations.at(-1)!;
const measuresOf = ({ training }: Model) =>
  training!.iterations.map(({ loss, trainRmse, testRmse }) => [
    loss,
    trainRmse as number,
    testRmse as number,
  ]);

describe('ratings that one block does not have, on a CPU', async () => {
  const session = await cpuSession();
  const fit = fitOn.bind(undefined, session);

  it.each<SgdOptions>([
    {},
    { biases: false, rate: 'adagrad', learningRate: 0.2 },
    { earlyStop: 1, regOffset: 0.2 },
    { schedule: 'blocks', regParamUsers: 0.02, regParamItems: 0.2 },
  ])('give the bits of one block: %j', async (options) => {
    const [bands, whole] = [await fit(LIMIT, options), await fit(usual, options)];
    const { plan, ratings } = bands.training!;
    expect(scheduleOf(plan)).toMatchObject({ rowBands: 8, inBands: true });
    const cut = plan.datasets.filter(({ name }) => ['rows', 'ratings', 'tests'].includes(name));
    expect(cut.map(({ parts }) => parts.length)).toEqual([8, 8, 8]);
    expect(factorsOf(bands)).toEqual(factorsOf(whole));
    // Errors are summed in slices of each band.
    measuresOf(bands).forEach((measures, epoch) =>
      measures.forEach((value, k) =>
        expect(Math.abs(value / measuresOf(whole)[epoch][k] - 1)).toBeLessThan(1e-9),
      ),
    );
    expect(ratings).toBe(train.length);
  });

  it('give them where items are the rows, and where rows are fewer than usual bands', async () => {
    for (const rows of [
      train.map(({ user, item, rating }) => ({ user: item, item: user, rating })),
      train.filter(({ user }) => user < 100),
    ]) {
      const own = { validation: undefined, rows };
      const [bands, whole] = [await fit(1000, {}, own), await fit(usual, {}, own)];
      expect(scheduleOf(bands.training!.plan).inBands).toBe(true);
      if (scheduleOf(bands.training!.plan).rowBands === 8) expect(factorsOf(bands)).toEqual(factorsOf(whole));
      else expect(Math.abs(last(bands).trainRmse! / last(whole).trainRmse! - 1)).toBeLessThan(0.02);
    }
  });

  it('go on from a checkpoint to the same bits, and are saved and loaded', async () => {
    const checkpoints = { checkpointDir: join(folder, 'checkpoints'), checkpointInterval: 1 };
    await fit(LIMIT, { maxIter: 2 }, checkpoints);
    const resumed = await fit(LIMIT, {}, { ...checkpoints, resume: true });
    const whole = await fit(LIMIT);
    expect(factorsOf(resumed)).toEqual(factorsOf(whole));
    await whole.save(join(folder, 'model'));
    const loaded = await Model.load(session, join(folder, 'model'));
    expect(factorsOf(loaded)).toEqual(factorsOf(whole));
    const { rmse } = await loaded.evaluate(session.from(ratingBatches(train)));
    expect(rmse).toBeCloseTo(last(whole).trainRmse!, 4);
  });

  it('have repeated pairs treated by the policy, band by band', async () => {
    const rows = [...train, ...train.slice(0, 700).map((one) => ({ ...one, rating: one.rating + 1 }))];
    const blocks = (limit: number, onDuplicates: 'mean' | 'error') =>
      fit(limit, { maxIter: 2, onDuplicates }, { validation: undefined, rows });
    const [bands, whole] = [await blocks(LIMIT, 'mean'), await blocks(usual, 'mean')];
    expect(bands.training!.ratings).toBe(whole.training!.ratings);
    expect(Math.abs(last(bands).loss / last(whole).loss - 1)).toBeLessThan(0.02);
    await expect(blocks(LIMIT, 'error')).rejects.toThrow(/repeat an earlier \(user, item\) pair/);
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
      /do not fit into one block, which tune, cross-validation and updates of a model need/,
    );
  });

  it('leave nothing behind a cancel, nor behind a failure', async () => {
    const before = hostMeter.now;
    const controller = new AbortController();
    const stopping: FitOptions = {
      signal: controller.signal,
      onEvent: (event) => void (event.type === 'iteration' && event.iteration === 2 && controller.abort()),
    };
    await expect(fit(LIMIT, { maxIter: 10_000 }, stopping)).rejects.toBeInstanceOf(CancelledError);
    expect(hostMeter.now).toBe(before);
    await expect(fit(LIMIT, { learningRate: 1e6, rate: 'constant' })).rejects.toThrow(
      /diverge|not finite|did not lower/,
    );
    expect(hostMeter.now).toBe(before);
  });
});

/** A rank at which factors take the same memory as ratings. */
const onGpu: SgdOptions = { rank: 40, precision: 'f32', maxIter: isDeep ? 6 : 4 };

/** The forms of a run in bands on one GPU, which depend on the GPU's memory. */
const forms: [string, Partial<SgdSchedule['deviceBlocks']> & object, (full: number) => number | undefined][] =
  [
    ['all resident', { resident: true }, () => undefined],
    ['ratings staged', { resident: false }, (full) => 0.75 * full],
    ['ratings and factors staged', { resident: false, rowsStaged: true }, (full) => 0.4 * full],
  ];

/** A session whose GPU has `memoryBytes`. */
async function sessionWith(memoryBytes: number | undefined): Promise<Session> {
  const made = await Session.create({ device: 'cpu', workers: 1 });
  (made.context().executor.devices as Device[]).push(
    await openGpuDevice({ memoryBytes: memoryBytes && Math.floor(memoryBytes), place: 'gpu:0' }),
  );
  return made;
}

describe.skipIf(noGpu)('ratings that one block does not have, on a GPU', () => {
  let whole: Model;
  let full: number;
  beforeAll(async () => {
    await using gpu = await sessionWith(undefined);
    whole = await fitOn(gpu, usual, onGpu);
    full = (await fitOn(gpu, LIMIT, { ...onGpu, maxIter: 1 })).training!.plan.memory['gpu:0'];
  });
  const nearWhole = (model: Model) =>
    expect(Math.abs(last(model).testRmse! - last(whole).testRmse!)).toBeLessThan(0.02);
  const adagrad = {
    biases: false,
    rate: 'adagrad',
    learningRate: 0.2,
    regOffset: 0.1,
    earlyStop: 5,
  } as const;

  it.each(everyNth(forms, 3, 2))(
    '%s',
    async (_, expected, bytes) => {
      await using limited = await sessionWith(bytes(full));
      const fit = fitOn.bind(undefined, limited, LIMIT);
      for (const options of isDeep ? [{}, adagrad] : [{}]) {
        const model = await fit({ ...onGpu, ...options });
        const { plan, iterations, bestIteration } = model.training!;
        expect(scheduleOf(plan)).toMatchObject({
          kind: 'blocks',
          inBands: true,
          columnBands: 1,
          deviceBlocks: expected,
        });
        expect(scheduleOf(plan).rowBands).toBe(scheduleOf(plan).deviceBlocks!.bandsADevice);
        if (!('rate' in options)) nearWhole(model);
        const { rmse } = await model.evaluate(limited.from(ratingBatches(train)));
        expect(rmse).toBeCloseTo(iterations[bestIteration - 1].trainRmse!, 4);
      }
      const checkpoints = { checkpointDir: folder, checkpointInterval: 1 };
      await fit({ ...onGpu, maxIter: 2 }, checkpoints);
      const resumed = await fit(onGpu, { ...checkpoints, resume: true });
      expect(resumed.training!.iterations).toHaveLength(onGpu.maxIter!);
      nearWhole(resumed);
    },
    180_000,
  );

  it('take the memory that is planned', async () => {
    const rows = randomRatings(72, 2400, 100, 30_000);
    const memoryOf = async (memoryBytes: number | undefined) => {
      await using limited = await sessionWith(memoryBytes);
      blockLimit.ratings = 8000;
      const { plan } = (
        await new SGD({ rank: 12, maxIter: 2, biases: false, precision: 'f32' }).fit(
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
    const shares = isDeep ? [0.8, 0.3] : [0.3];
    const all = [resident];
    for (const share of shares) all.push(await memoryOf(share * resident.planned));
    expect(all.map(({ form }) => [form?.resident, form?.rowsStaged])).toEqual([
      [true, undefined],
      ...(isDeep ? [[false, undefined]] : []),
      [false, true],
    ]);
    for (const { planned, measured } of all) {
      expect(measured / planned).toBeGreaterThan(0.9);
      expect(measured / planned).toBeLessThan(1.1);
    }
  });

  it('whose factors of rows are larger than a buffer', async () => {
    await using limited = await sessionWith(undefined);
    const [device] = computeDevices(limited.context().executor);
    Object.assign(device, { info: { ...device.info, bindingBytes: 150 * 48 * 4 } });
    const model = await fitOn(limited, usual, onGpu);
    const schedule = scheduleOf(model.training!.plan);
    expect(schedule).toMatchObject({ columnBands: 1, deviceBlocks: { resident: true } });
    expect(schedule.rowBands).toBeGreaterThan(1);
    nearWhole(model);
  });

  it('leave host memory behind the first epoch where all stay on the GPU, and nothing there behind a cancel', async () => {
    await using limited = await sessionWith(undefined);
    const seen: number[] = [];
    const onEvent: FitOptions['onEvent'] = ({ type }) =>
      void (type === 'iteration' && seen.push(hostMeter.now));
    await fitOn(limited, LIMIT, {}, { validation: undefined, onEvent });
    expect(seen).toHaveLength(3);
    for (const now of seen) expect(now).toBeLessThan(8 * train.length);
    const [device] = computeDevices(limited.context().executor);
    const put = new Map<string, PartitionRef>();
    const [run, puts, controller] = [device.run.bind(device), device.put.bind(device), new AbortController()];
    let blocks = 0;
    device.put = (ref, partition) => {
      put.set(partitionKey(ref), ref);
      puts(ref, partition);
    };
    device.run = (task, signal) => {
      if (task.kernel === 'sgd-tiles' && ++blocks === 6) controller.abort();
      return run(task, signal);
    };
    const { signal } = controller;
    await expect(fitOn(limited, LIMIT, { maxIter: 50 }, { signal })).rejects.toBeInstanceOf(CancelledError);
    for (const ref of put.values()) await expect(device.fetch(ref)).rejects.toThrow('not on device');
  });
});
