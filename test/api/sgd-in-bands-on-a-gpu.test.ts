import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { partitionKey, type PartitionRef } from '../../engine/partition.ts';
import type { Device } from '../../engine/run/device.ts';
import { computeDevices } from '../../engine/run/devices.ts';
import { hostMeter } from '../../engine/run/memory-meter.ts';
import { openGpuDevice } from '../../gpu/open-gpu-device.ts';
import { CancelledError, Model, Session, SGD, type SgdOptions } from '../../index.ts';
import { blockLimit } from '../../operators/planner/sizes.ts';
import type { SgdSchedule } from '../../operators/sgd/schedules/schedule.ts';
import { everyNth } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { fit, held, last, LIMIT, scheduleOf, current, train, usual } from './banded-sgd.ts';

/** A rank at which factors take the same memory as ratings. */
const onGpu: SgdOptions = { rank: 40, precision: 'f32', maxIter: 6 };

/** The forms of a run in bands on one GPU, which depend on the GPU's memory. */
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
    current.session = await Session.create({ device: 'gpu', workers: 2 });
    whole = await fit(usual, onGpu);
    full = (await fit(LIMIT, { ...onGpu, maxIter: 1 })).training!.plan.memory['gpu:0'];
  });

  it.each(everyNth(forms, 3, 2))(
    '%s',
    async (_, expected, bytes) => {
      const memoryBytes = bytes(full);
      const own = current.session!;
      const folder = await mkdtemp(join(tmpdir(), 'bands-'));
      await using limited = memoryBytes === undefined ? undefined : await sessionWith(memoryBytes);
      current.session = limited ?? own;
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
          expect((await model.evaluate(current.session!.from(ratingBatches(train)))).rmse).toBeCloseTo(
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
        current.session = own;
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
  });

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
  });

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
  });

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
  });
});

/** A session whose GPU has `memoryBytes`. */
async function sessionWith(memoryBytes: number | undefined): Promise<Session> {
  const made = await Session.create({ device: 'cpu', workers: 2 });
  (made.context().executor.devices as Device[]).push(
    await openGpuDevice({ memoryBytes: memoryBytes && Math.floor(memoryBytes), place: 'gpu:0' }),
  );
  return made;
}
