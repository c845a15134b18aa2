/** SGD by blocks on one device and on several that share the software adapter. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { computeDevices } from '../../engine/devices.ts';
import type { Device } from '../../engine/executor.ts';
import { partitionKey, type PartitionRef } from '../../engine/partition.ts';
import type { Task } from '../../engine/task.ts';
import { GpuDevice } from '../../gpu/device.ts';
import { CancelledError, CapacityError, LostTrainingError, type Model, type ProgressEvent, Session, SGD, type SgdOptions } from '../../index.ts';
import { dataFolder } from '../support/data-folder.ts';
import { noGpu } from '../support/open-gpu.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches, type Triple } from '../support/ratings.ts';

const planted = plantedRatings(3, 150, 90, 6000);
const [train, held] = [planted.slice(500), planted.slice(0, 500)];
const options: SgdOptions = { rank: 4, biases: true, regParam: 0.05, learningRate: 0.1, maxIter: 8, seed: 2, schedule: 'blocks' };

/** A session whose devices are the CPU and a number of GPUs, all of them the same adapter. */
async function openWith(gpus: number, memoryBytes?: number): Promise<Session> {
  const session = await Session.create({ device: 'cpu', workers: 2 });
  const devices = await Promise.all(Array.from({ length: gpus }, (_, number) => GpuDevice.open({ memoryBytes, place: `gpu:${number}` })));
  (session.context().executor.devices as Device[]).push(...devices);
  return session;
}

/** A record of transfers to and from devices, and of errors in them. */
class Watch {
  readonly tasks: { readonly kernel: string; readonly device: number; readonly block?: string; readonly bytesUp: number }[] = [];
  readonly puts: { readonly device: number; readonly layout: string; readonly name: string }[] = [];
  readonly fetches: string[] = [];
  readonly wrong: string[] = [];
  mostBlocks = 0;

  constructor(devices: readonly Device[]) {
    const holders = new Map<number, number>();
    devices.forEach((device, number) => {
      const [run, put, fetch, release] = [device.run.bind(device), device.put.bind(device), device.fetch.bind(device), device.release.bind(device)];
      const blocks = new Set<string>();
      device.run = async (task: Task, signal) => {
        const result = await run(task, signal);
        this.tasks.push({ kernel: task.kernel, device: number, block: task.inputs.block && partitionKey(task.inputs.block), bytesUp: result.metrics.bytesUp });
        return result;
      };
      device.put = (ref, partition) => {
        this.puts.push({ device: number, layout: partition.layout, name: ref.name });
        if (ref.name.startsWith('grid')) this.mostBlocks = Math.max(this.mostBlocks, blocks.add(partitionKey(ref)).size);
        if (isStepped(ref)) {
          if (holders.has(ref.partition)) this.wrong.push(`segment ${ref.partition} is on ${holders.get(ref.partition)} and ${number}`);
          holders.set(ref.partition, number);
        }
        put(ref, partition);
      };
      device.fetch = async (ref) => {
        this.fetches.push(ref.name);
        const partition = await fetch(ref);
        if (isStepped(ref)) holders.delete(ref.partition);
        return partition;
      };
      device.release = (ref) => {
        blocks.delete(partitionKey(ref));
        release(ref);
      };
    });
  }
}

const isStepped = ({ name }: PartitionRef) => /^segment#\d+\/factors$/.test(name);

const fit = (session: Session, more: SgdOptions, rows: readonly Triple[] = train, run: { onEvent?: (event: ProgressEvent) => void; signal?: AbortSignal } = {}) =>
  new SGD({ ...options, ...more }).fit(session.from(ratingBatches(rows)), { validation: session.from(ratingBatches(held)), ...run });
const last = (model: Model) => model.training!.iterations.at(-1)!;
const factorsOf = (model: Model) => [model.userFactors, model.itemFactors].map((batch) => batch.data.children[1].children[0].values as Float32Array);

describe.skipIf(noGpu)('SGD by blocks', () => {
  let cpu: Session;
  const sessions: Session[] = [];
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
    for (const count of [1, 2, 3]) sessions.push(await openWith(count));
  });
  afterAll(async () => {
    await Promise.all([cpu, ...sessions].map((session) => session?.close()));
  });

  it.each<SgdOptions>([
    { precision: 'f32' },
    // Without biases the loss still falls fast after eight epochs, and teams that overwrite each other change it by some hundredths.
    { biases: false, learningRate: 0.15, maxIter: 20, earlyStop: 8 },
    { rate: 'adagrad', learningRate: 0.2, rank: 20 },
    { rate: 'adagrad', learningRate: 0.2, rank: 20, precision: 'f32' },
  ])('on one, two and three devices ends near what the CPU gives: %j', async (more) => {
    const expected = await fit(cpu, { ...more, precision: 'auto' });
    for (const [at, session] of sessions.entries()) {
      const model = await fit(session, more);
      expect(last(model).testRmse! - last(expected).testRmse!).toBeLessThan(0.02);
      expect(last(model).loss).toBeLessThan(model.training!.iterations[0].loss);
      if (more.earlyStop === undefined) expect((await model.evaluate(session.from(ratingBatches(train)))).rmse).toBeCloseTo(last(model).trainRmse, 4);
      const { stages, devices } = model.training!.plan;
      expect(devices.map(({ kind }) => kind)).toEqual([...Array.from({ length: at + 1 }, () => 'gpu'), 'cpu']);
      const epoch = stages.find(({ name }) => name === 'sgd-epoch')!;
      expect(epoch).toMatchObject({ kernel: 'sgd-tiles', partitions: { p: Math.max(4, 2 * (at + 1)), q: at + 1 } });
    }
  });

  it.each([1, 2, 3])('steps every rating once an epoch on %i devices, and moves nothing but segments after the first', async (count) => {
    await using session = await openWith(count);
    const watch = new Watch(computeDevices(session.context().executor));
    const maxIter = 3;
    const starts: number[] = [];
    const model = await fit(session, { maxIter, precision: 'f32' }, train, { onEvent: (event) => void (event.type === 'iteration' && starts.push(watch.puts.length)) });
    const [p, q] = [Math.max(4, 2 * count), count];
    expect(watch.wrong).toEqual([]);
    const stepped = watch.tasks.filter(({ kernel }) => kernel === 'sgd-tiles');
    expect(stepped).toHaveLength(maxIter * p * q);
    expect(new Set(stepped.map(({ block }) => block)).size).toBe(p * q);
    expect(model.training!.plan.stages.find(({ name }) => name === 'sgd-epoch')!.measured!.rows).toBe(maxIter * (train.length + 150));
    for (let device = 0; device < count; device++) expect(stepped.filter((task) => task.device === device)).toHaveLength(maxIter * p);
    // Later epochs put only segments: each once on every device for steps, and once for the loss on either set.
    const later = watch.puts.slice(starts[0], starts[1]);
    expect(new Set(later.map(({ name }) => name.replace(/#.*/, '')))).toEqual(new Set(['segment', 'swept']));
    expect(later).toHaveLength(3 * p * q);
    expect(watch.puts.filter(({ name }) => name.startsWith('band'))).toHaveLength(count);
    // A row of a matrix is 64 bytes; buffers of all segments are as large as the widest's.
    const sent = new Set(stepped.slice(p * q).map(({ bytesUp }) => bytesUp / 64));
    expect(sent.size).toBe(1);
    expect([...sent][0]).toBeGreaterThanOrEqual(90 / p);
    expect([...sent][0]).toBeLessThan(3 * (90 / p));
    expect(watch.fetches.filter((name) => name.startsWith('segment'))).toHaveLength(maxIter * p * q);
  });

  it('visits the blocks in another order each epoch', async () => {
    await using session = await openWith(1);
    const watch = new Watch(computeDevices(session.context().executor));
    await fit(session, { maxIter: 4, seed: 7 });
    const blocks = watch.tasks.filter(({ kernel }) => kernel === 'sgd-tiles').map(({ block }) => block);
    const orders = [0, 4, 8, 12].map((from) => blocks.slice(from, from + 4).join());
    expect(new Set(orders).size).toBeGreaterThan(1);
  });

  it.each([1, 2])('stages blocks where they do not fit %i devices: two at a time, and as good a model', async (count) => {
    const resident = sessions[count - 1];
    const { plan } = await new SGD({ ...options }).plan(resident.from(ratingBatches(train)));
    await using tight = await openWith(count, Math.floor(0.7 * plan.memory.deviceBytes));
    const watch = new Watch(computeDevices(tight.context().executor));
    const [expected, got] = [await fit(resident, { precision: 'f32' }), await fit(tight, { precision: 'f32' })];
    expect(watch.wrong).toEqual([]);
    expect(watch.mostBlocks).toBe(2);
    expect(Math.abs(last(got).testRmse! - last(expected).testRmse!)).toBeLessThan(0.01);
    const reasons = got.training!.plan.stages.find(({ name }) => name === 'sgd-epoch')!.reasons!.join('\n');
    expect(reasons).toMatch(/blocks of ratings are staged: .* do not fit .*; two blocks at a time/);
    expect(watch.tasks.filter(({ kernel }) => kernel === 'upload').length).toBeGreaterThan(8);
  });

  it('is what auto takes on several devices, and where other schedules do not fit one', async () => {
    const kindOf = (model: Model) => model.training!.plan.stages.find(({ name }) => name === 'sgd-epoch')!.reasons![0];
    expect(kindOf(await fit(sessions[1], { schedule: 'auto', maxIter: 1 }))).toBe('schedule auto: blocks, the one that 2 GPUs share');
    const { plan } = await new SGD({ ...options, schedule: 'auto' }).plan(sessions[0].from(ratingBatches(train)));
    await using tight = await openWith(1, Math.floor(0.8 * plan.memory.deviceBytes));
    expect(kindOf(await fit(tight, { schedule: 'auto', maxIter: 1 }))).toMatch(/^schedule auto: blocks, since schedule tile needs .* and the GPU has /);
    await using tiny = await openWith(2, 10_000);
    await expect(fit(tiny, { maxIter: 1 })).rejects.toBeInstanceOf(CapacityError);
  });

  it('steps by Hogwild! where segments fit no workgroups', async () => {
    await using session = await openWith(2);
    for (const device of computeDevices(session.context().executor)) Object.assign(device, { limits: { ...device.limits, workgroupBytes: 0 } });
    const watch = new Watch(computeDevices(session.context().executor));
    for (const more of [{}, { rate: 'adagrad', learningRate: 0.2 }] as const) {
      const expected = await fit(cpu, more);
      expect(Math.abs(last(await fit(session, more)).testRmse! - last(expected).testRmse!)).toBeLessThan(0.02);
    }
    expect(watch.wrong).toEqual([]);
    expect(watch.tasks.filter(({ kernel }) => kernel === 'sgd-block')).toHaveLength(2 * 8 * 8);
    expect(watch.tasks.filter(({ kernel }) => kernel === 'sgd-tiles')).toHaveLength(0);
  });

  it('halves the rate when an epoch diverges', async () => {
    const warnings: string[] = [];
    const model = await fit(sessions[1], { rate: 'constant', learningRate: 1.5, maxIter: 3 }, train, { onEvent: (event) => void (event.type === 'warning' && warnings.push(event.text)) });
    expect(warnings).toContainEqual(expect.stringMatching(/^epoch \d diverged: .* half the learning rate, 0\.75$/));
    expect(factorsOf(model).every((values) => values.every(Number.isFinite))).toBe(true);
  });

  it('is cancelled in the middle of an epoch, leaves nothing, and the session goes on', async () => {
    await using session = await openWith(2);
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
    await expect(fit(session, { maxIter: 10_000 }, train, { signal: controller.signal })).rejects.toBeInstanceOf(CancelledError);
    for (const { device, ref } of put.values()) await expect(device.fetch(ref)).rejects.toThrow('not on device');
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
    expect(last(model).trainRmse).toBeLessThanOrEqual(model.training!.iterations[0].trainRmse + 0.05);
    expect((await model.evaluate(sessions[2].from(ratingBatches(rows)))).rmse).toBeCloseTo(last(model).trainRmse, 4);
  });

  it('takes bands and segments without ratings: those of a model that is updated', async () => {
    const base = await fit(cpu, { maxIter: 4 });
    for (const count of [1, 40]) {
      const late = plantedRatings(3, 150, 90, 900).filter(({ user }) => user >= 100).slice(0, count);
      const ratings = (session: Session) => session.from(ratingBatches(late));
      const [expected, got] = await Promise.all([cpu, sessions[2]].map(async (session) => {
        const model = await base.update(ratings(session), { learningRate: 0.02 });
        return (await model.evaluate(ratings(session))).rmse;
      }));
      expect(Math.abs(got - expected)).toBeLessThan(0.02);
    }
  });

  it('that loses one device keeps the last model that was copied', async () => {
    await using session = await openWith(2);
    const [, second] = computeDevices(session.context().executor) as GpuDevice[];
    const run = second.run.bind(second);
    let blocks = 0;
    second.run = (task, signal) => {
      if (task.kernel === 'sgd-tiles' && ++blocks === 3 * 4 + 2) void second.lose();
      return run(task, signal);
    };
    let clock = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (clock += 60_000));
    const error = await fit(session, {}).catch((thrown: unknown) => thrown);
    vi.restoreAllMocks();
    expect(error).toBeInstanceOf(LostTrainingError);
    const { model, iteration, exitCode } = error as LostTrainingError;
    expect([iteration, exitCode]).toEqual([3, 5]);
    const rmse = (await model.evaluate(cpu.from(ratingBatches(train)))).rmse;
    expect(rmse).toBeCloseTo(model.training!.iterations.find((one) => one.iteration === iteration)!.trainRmse, 4);
  });
});

const movielens = noGpu ? undefined : dataFolder('ml-latest-small');

describe('SGD by blocks on real ratings', () => {
  it.skipIf(!movielens)('ends on one device and on two within 0.005 of tiles and of blocks on the CPU on ml-latest-small', async () => {
    const rmse = async (session: Session, more: SgdOptions) => {
      const [known, unseen] = session.read.parquet(join(movielens as string, 'ratings.parquet')).randomSplit([0.9, 0.1], { seed: 1 });
      return (await (await new SGD({ rank: 8, biases: true, maxIter: 10, seed: 1, ...more }).fit(known)).evaluate(unseen)).rmse;
    };
    await using cpu = await Session.create({ device: 'cpu', workers: 2 });
    await using one = await openWith(1);
    await using two = await openWith(2);
    const expected = [await rmse(cpu, { schedule: 'blocks' }), await rmse(one, { schedule: 'tile' })];
    for (const session of [one, two]) {
      const found = await rmse(session, { schedule: 'blocks' });
      for (const each of expected) expect(Math.abs(found - each)).toBeLessThan(0.005);
    }
  });
});
