/** SGD by blocks on one device and on several that share the software adapter. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { computeDevices } from '../../../engine/run/devices.ts';
import type { Device } from '../../../engine/run/device.ts';
import { type PhysicalPlan, stageNamed } from '../../../engine/plan/physical-plan.ts';
import { partitionKey, type PartitionRef } from '../../../engine/partition.ts';
import type { GpuDevice } from '../../../gpu/device.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import {
  CancelledError,
  CapacityError,
  type Model,
  type ProgressEvent,
  Session,
  SGD,
  type SgdOptions,
} from '../../../index.ts';
import { isDeep } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { plantedRatings } from '../../support/planted.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';

const planted = plantedRatings(3, 150, 90, 6000);
const [train, held] = [planted.slice(500), planted.slice(0, 500)];
const options: SgdOptions = {
  rank: 4,
  biases: true,
  regParam: 0.05,
  learningRate: 0.1,
  maxIter: 8,
  seed: 2,
  schedule: 'blocks',
};

const openGpus = (count: number, memoryBytes?: number) =>
  Promise.all(
    Array.from({ length: count }, (_, number) => openGpuDevice({ memoryBytes, place: `gpu:${number}` })),
  );
const devicesOf = (session: Session) => session.context().executor.devices as Device[];

/** A session whose devices are the CPU and these GPUs, which it closes. */
async function sessionOn(gpus: readonly GpuDevice[]): Promise<Session> {
  const session = await Session.create({ device: 'cpu', workers: 2 });
  devicesOf(session).push(...gpus);
  return session;
}

/** A session whose devices are the CPU and a number of GPUs, all of them the same adapter. */
const openWith = async (count: number, memoryBytes?: number) => sessionOn(await openGpus(count, memoryBytes));

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
const factorsOf = (model: Model) =>
  [model.userFactors, model.itemFactors].map(
    (batch) => batch.data.children[1].children[0].values as Float32Array,
  );

describe.skipIf(noGpu)('SGD by blocks', () => {
  let cpu: Session;
  const sessions: Session[] = [];
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
    // Kernels are compiled once a device, which the sessions share.
    const gpus = await openGpus(3);
    for (const count of [1, 2, 3]) sessions.push(await sessionOn(gpus.slice(0, count)));
  });
  afterAll(async () => {
    for (const session of sessions.slice(0, 2)) devicesOf(session).splice(1);
    await Promise.all([cpu, ...sessions].map((session) => session?.close()));
  });

  const near: [SgdOptions, readonly number[]][] = [
    // Without biases the loss still falls fast after eight epochs, and teams that overwrite each other's
    // steps change it by some hundredths.
    [{ biases: false, precision: 'f32', learningRate: 0.15, maxIter: 20, earlyStop: 8 }, [2]],
  ];
  const deepNear: typeof near = [[{ rate: 'adagrad', learningRate: 0.2, rank: 20 }, [1, 3]]];
  it.each(isDeep ? [...near, ...deepNear] : near)(
    'ends near the result of a CPU: %j on %j devices',
    async (more, counts) => {
      const expected = await fit(cpu, { ...more, precision: 'auto' });
      for (const count of counts) {
        const session = sessions[count - 1];
        const model = await fit(session, more);
        expect(last(model).testRmse! - last(expected).testRmse!).toBeLessThan(0.02);
        expect(last(model).loss).toBeLessThan(model.training!.iterations[0].loss);
        if (more.earlyStop === undefined)
          expect((await model.evaluate(session.from(ratingBatches(train)))).rmse).toBeCloseTo(
            last(model).trainRmse!,
            4,
          );
        const { plan } = model.training!;
        expect(plan.devices.map(({ place }) => place)).toEqual([
          ...Array.from({ length: count }, (_, at) => `gpu:${at}`),
          'cpu',
        ]);
        expect(stageNamed(plan, 'sgd-epoch')).toMatchObject({
          kernel: `sgd-tiles ${more.precision ?? 'f16'}`,
          partitions: { p: Math.max(4, 2 * count), q: count },
        });
      }
    },
  );

  it('steps every rating once an epoch, and moves only segments after the first', async () => {
    const [one, three] = await Promise.all(
      [1, 3].map(async (maxIter) => (await fit(sessions[1], { maxIter, precision: 'f32' })).training!.plan),
    );
    const of = (plan: PhysicalPlan) => plan.measured!['sgd-epoch'];
    // Four blocks on each of two devices, and the segments that are passed to the other device: each once or
    // twice an epoch.
    const passed = [of(one).runs - 8, of(three).runs - 24];
    expect(passed[0]).toBeGreaterThanOrEqual(4);
    expect(passed[1]).toBeLessThanOrEqual(24);
    expect(passed.every((count) => count % 4 === 0)).toBe(true);
    // All segments have the width of the widest, and a row of 6 features takes 64 bytes; no ratings are
    // uploaded again.
    const width = three.datasets.find(({ name }) => name === 'columns')!.parts[0].rows;
    expect(of(three).bytesUp - of(one).bytesUp).toBe((passed[1] - passed[0]) * width * 64);
  });

  it('stages blocks that do not fit the device, with the same error', async () => {
    const [resident] = sessions;
    const { plan } = await new SGD({ ...options }).plan(resident.from(ratingBatches(train)));
    await using tight = await openWith(1, Math.floor(0.7 * plan.memory['gpu:0']));
    const [expected, got] = [
      await fit(resident, { precision: 'f32' }),
      await fit(tight, { precision: 'f32' }),
    ];
    expect(Math.abs(last(got).testRmse! - last(expected).testRmse!)).toBeLessThan(0.01);
    const staged = got.training!.plan;
    expect(staged.memory['gpu:0']).toBeLessThan(0.7 * plan.memory['gpu:0']);
    expect(stageNamed(staged, 'sgd-epoch').reasons).toContain(
      'blocks of ratings are staged, two at a time: one is stepped while the next is copied',
    );
    expect(staged.reasons).toContainEqual(
      expect.stringMatching(
        /^rejected: \d+ segments of columns with all blocks of ratings on the device needs /,
      ),
    );
  });

  it('is what auto takes on several devices, and where other schedules do not fit one', async () => {
    const kindOf = (model: Model) => stageNamed(model.training!.plan, 'sgd-epoch').reasons![0];
    expect(kindOf(await fit(sessions[1], { schedule: 'auto', maxIter: 1 }))).toBe(
      'schedule auto: blocks, the one that 2 devices share',
    );
    const { plan } = await new SGD({ ...options, schedule: 'auto' }).plan(
      sessions[0].from(ratingBatches(train)),
    );
    await using tight = await openWith(1, Math.floor(0.8 * plan.memory['gpu:0']));
    expect(kindOf(await fit(tight, { schedule: 'auto', maxIter: 1 }))).toBe(
      'schedule auto: blocks, since schedule tile does not fit the GPU',
    );
    await using tiny = await openWith(2, 10_000);
    await expect(fit(tiny, { maxIter: 1 })).rejects.toBeInstanceOf(CapacityError);
  });

  it('steps by Hogwild! where segments fit no workgroups', async () => {
    const [session] = sessions;
    const [device] = computeDevices(session.context().executor);
    const { info } = device;
    const more = { rate: 'adagrad', learningRate: 0.2 } as const;
    const expected = await fit(cpu, more);
    Object.assign(device, { info: { ...info, limits: { ...info.limits, workgroupBytes: 0 } } });
    const got = await fit(session, more).finally(() => Object.assign(device, { info }));
    expect(Math.abs(last(got).testRmse! - last(expected).testRmse!)).toBeLessThan(0.02);
    expect(stageNamed(got.training!.plan, 'sgd-epoch').kernel).toBe('sgd-block blocks f16');
  });

  it('halves the rate when an epoch diverges', async () => {
    const warnings: string[] = [];
    const model = await fit(sessions[1], { rate: 'constant', learningRate: 1.5, maxIter: 3 }, train, {
      onEvent: (event) => void (event.type === 'warning' && warnings.push(event.text)),
    });
    expect(warnings).toContainEqual(
      expect.stringMatching(/^epoch \d diverged: .* half the learning rate, 0\.75$/),
    );
    expect(factorsOf(model).every((values) => values.every(Number.isFinite))).toBe(true);
  });

  it('is cancelled in the middle of an epoch, leaves nothing, and the session goes on', async () => {
    const [, session] = sessions;
    const controller = new AbortController();
    const devices = computeDevices(session.context().executor);
    const put = new Map<string, { device: Device; ref: PartitionRef }>();
    let blocks = 0;
    devices.forEach((device, number) => {
      const [run, puts] = [device.run.bind(device), device.put.bind(device)];
      device.put = (ref, partition) => {
        put.set(`${number} ${partitionKey(ref)}`, { device, ref });
        puts(ref, partition);
      };
      device.run = (task, signal) => {
        if (task.kernel === 'sgd-tiles' && ++blocks === 11) controller.abort();
        return run(task, signal);
      };
    });
    await expect(
      fit(session, { maxIter: 10_000 }, train, { signal: controller.signal }),
    ).rejects.toBeInstanceOf(CancelledError);
    // The methods of the class again.
    for (const device of devices as Partial<Device>[]) {
      delete device.run;
      delete device.put;
    }
    for (const { device, ref } of put.values())
      await expect(device.fetch(ref)).rejects.toThrow('not on device');
    expect((await fit(session, { maxIter: 1 })).training?.iterations).toHaveLength(1);
  });

  it.each([
    ['one rating', [{ user: 1, item: 1, rating: 3 }]],
    ['two rows and one column', [1, 2].map((user) => ({ user, item: 5, rating: user }))],
    ['one row', [1, 2, 3, 4, 5].map((item) => ({ user: 5, item, rating: item }))],
    ['more devices than rows', plantedRatings(1, 2, 2, 9)],
  ])('takes %s on three devices', async (_name, rows) => {
    const model = await new SGD({ ...options, maxIter: 5 }).fit(sessions[2].from(ratingBatches(rows)));
    expect(factorsOf(model).every((values) => values.every(Number.isFinite))).toBe(true);
    expect(last(model).trainRmse!).toBeLessThanOrEqual(model.training!.iterations[0].trainRmse! + 0.05);
    expect((await model.evaluate(sessions[2].from(ratingBatches(rows)))).rmse).toBeCloseTo(
      last(model).trainRmse!,
      4,
    );
  });

  it('takes bands and segments without ratings: those of a model that is updated', async () => {
    const base = await fit(cpu, { maxIter: 4 });
    for (const count of [1, 40]) {
      const late = plantedRatings(3, 150, 90, 900)
        .filter(({ user }) => user >= 100)
        .slice(0, count);
      const ratings = (session: Session) => session.from(ratingBatches(late));
      const [expected, got] = await Promise.all(
        [cpu, sessions[2]].map(async (session) => {
          const model = await base.update(ratings(session), { learningRate: 0.02 });
          return (await model.evaluate(ratings(session))).rmse;
        }),
      );
      expect(Math.abs(got - expected)).toBeLessThan(0.02);
    }
  });

  it('that loses one device goes on with the other from the last epoch that was copied', async () => {
    await using session = await openWith(2);
    const [first, second] = computeDevices(session.context().executor) as GpuDevice[];
    let blocks = 0;
    let clock = 0;
    for (const device of [first, second]) {
      const run = device.run.bind(device);
      device.run = (task, signal) => {
        // An epoch takes minutes and other work no time, so that a copy is due after each epoch.
        if (task.kernel === 'sgd-tiles') clock += 60_000;
        if (task.kernel === 'sgd-tiles' && device === second && ++blocks === 3 * 4 + 2) void second.lose();
        return run(task, signal);
      };
    }
    vi.spyOn(performance, 'now').mockImplementation(() => clock);
    const warnings: string[] = [];
    const model = await fit(session, {}, train, {
      onEvent: (event) => void (event.type === 'warning' && warnings.push(event.text)),
    }).finally(() => vi.restoreAllMocks());
    expect(warnings).toEqual([
      expect.stringMatching(/was lost during .*; training continues from epoch 3 on gpu:0$/),
    ]);
    expect(model.training!.iterations.map(({ iteration }) => iteration)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(stageNamed(model.training!.plan, 'sgd-epoch')).toMatchObject({ at: ['gpu:0'] });
    const expected = await fit(cpu, {});
    expect(last(model).testRmse! - last(expected).testRmse!).toBeLessThan(0.02);
    expect((await model.evaluate(cpu.from(ratingBatches(train)))).rmse).toBeCloseTo(
      last(model).trainRmse!,
      4,
    );
  });
});
