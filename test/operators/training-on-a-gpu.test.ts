/** Training with any device in addition to the CPU. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import { stageNamed } from '../../engine/plan/physical-plan.ts';
import type { Task } from '../../engine/task.ts';
import {
  ALS,
  type AlsOptions,
  CancelledError,
  type Dataset,
  LostTrainingError,
  type Model,
  type ProgressEvent,
  Session,
  SGD,
} from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { isDeep } from '../support/deep.ts';
import { plantedRatings } from '../support/planted.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { secondDevice } from '../support/devices/second-device.ts';
import { factorsOf } from '../support/model-values.ts';

const rows = randomRatings(51, 300, 200, 9000);
const test = randomRatings(52, 300, 200, 500);
const options: AlsOptions = { rank: 9, maxIter: 4, seed: 3, solver: 'cholesky' };

async function openWith(device: Device | undefined): Promise<Session> {
  const session = await Session.create({ device: 'cpu', workers: 2 });
  if (device !== undefined) (session.context().executor.devices as Device[]).push(device);
  return session;
}

async function fit(
  session: Session,
  parameters = options,
  onEvent?: (event: ProgressEvent) => void,
): Promise<Model> {
  return new ALS(parameters).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(test)),
    onEvent,
  });
}

async function rowsOf(dataset: Dataset): Promise<string[]> {
  const rows: string[] = [];
  for await (const batch of dataset) rows.push(...batch.toArray().map(String));
  return rows;
}

describe('training on a second device', () => {
  it.each([{ earlyStop: 1 }] as AlsOptions[])(
    'starts from the same bits and gives what the CPU gives, %j',
    async (more) => {
      const plain = await cpuSession();
      await using both = await openWith(secondDevice());
      const [expected, got] = [
        await fit(plain, { ...options, ...more }),
        await fit(both, { ...options, ...more }),
      ];
      expect(factorsOf(got)).toEqual(factorsOf(expected));
      expect(got.training?.plan.devices.map(({ kind }) => kind)).toEqual(['gpu', 'cpu']);
    },
  );

  it('gives it passes as wholes, with the kernel that it chose for the side, and leaves nothing there', async () => {
    const device = secondDevice();
    await using session = await openWith(device);
    const model = await fit(session, { ...options, maxIter: 1 });
    const of = (kernel: string) => device.ran.filter((task) => task.kernel === kernel);
    expect(of('update').map(({ params }) => params.variant)).toEqual([
      `for-${model.itemCount}-rows`,
      `for-${model.userCount}-rows`,
    ]);
    expect(of('update')[0].params).toMatchObject({
      from: 0,
      to: model.itemCount,
      precision: 'f32',
      cgBelow: 0,
    });
    expect(of('squared-error')).toHaveLength(2);
    expect(of('initialize')).toHaveLength(0);
    const { plan } = model.training!;
    expect(stageNamed(plan, 'update-users')).toMatchObject({
      at: ['gpu:0'],
      kernel: `update for-${model.userCount}-rows cholesky`,
      tasks: 1,
      reasons: [expect.stringMatching(/^of \d+ ratings/)],
    });
    expect(stageNamed(plan, 'initialize')).toMatchObject({ at: ['cpu'] });
    expect(model.metadata.plan).toMatchObject({
      choices: { items: { variant: `for-${model.itemCount}-rows`, precision: 'f32' } },
    });
    for (const { inputs } of device.ran)
      for (const ref of Object.values(inputs))
        await expect(device.fetch(ref)).rejects.toThrow('not on device');
  });

  it('keeps the model when the device is lost after its factors came back, and frees what the device keeps however a run ends', async () => {
    const device = secondDevice();
    let trims = 0;
    device.trim = async () => {
      trims++;
      throw new DeviceLostError('gone', { phase: 'gpu' });
    };
    await using session = await openWith(device);
    expect((await fit(session, { ...options, maxIter: 1 })).training?.iterations).toHaveLength(1);
    expect(trims).toBe(1);
    const controller = new AbortController();
    const cancelled = new SGD({ maxIter: 1 }).fit(session.from(ratingBatches(rows)), {
      signal: controller.signal,
      onEvent: ({ type }) => type === 'plan' && controller.abort(),
    });
    await expect(cancelled).rejects.toBeInstanceOf(CancelledError);
    expect(trims).toBe(2);
  });

  it('shares SGD with a third by blocks, one task after the other where devices keep no order, and leaves nothing there', async () => {
    const devices = [secondDevice(), secondDevice({ place: 'gpu:1' })];
    await using session = await openWith(devices[0]);
    (session.context().executor.devices as Device[]).push(devices[1]);
    const plain = await cpuSession();
    const planted = plantedRatings(3, 150, 90, 6000);
    const sgd = (on: Session) =>
      new SGD({
        rank: 4,
        biases: true,
        maxIter: 6,
        seed: 3,
        rate: 'adagrad',
        learningRate: 0.2,
        regParam: 0.05,
      }).fit(on.from(ratingBatches(planted.slice(500))), {
        validation: on.from(ratingBatches(planted.slice(0, 500))),
      });
    const [expected, got] = [await sgd(plain), await sgd(session)].map((model) =>
      model.training!.iterations.at(-1)!,
    );
    expect(got.testRmse! - expected.testRmse!).toBeLessThan(0.02);
    for (const { ran, fetch } of devices) {
      expect(ran.filter(({ kernel }) => kernel === 'sgd-block')).toHaveLength(6 * 4);
      for (const { inputs, outputs } of ran)
        for (const ref of [...Object.values(inputs), ...Object.values(outputs)])
          await expect(fetch(ref)).rejects.toThrow('not on device');
    }
  });

  it.each(isDeep ? [0, 1, 2] : [2])(
    'takes a validation set of which the training set has no pair, with %i devices beside the CPU',
    async (count) => {
      await using session = await openWith(undefined);
      for (let at = 0; at < count; at++)
        (session.context().executor.devices as Device[]).push(secondDevice({ place: `gpu:${at}` }));
      const validation = session.from(
        ratingBatches(test.map(({ user, item, rating }) => ({ user: user + 10_000, item, rating }))),
      );
      const trainers = [
        new ALS({ rank: 2, maxIter: 2 }),
        new SGD({ rank: 2, maxIter: 2 }),
        new SGD({ rank: 2, maxIter: 2, schedule: 'hogwild' }),
      ];
      for (const trainer of isDeep ? trainers : [trainers[count], trainers[(count + 1) % 3]]) {
        const { training } = await trainer.fit(session.from(ratingBatches(rows)), { validation });
        expect(training?.coldPairs).toBe(test.length);
        expect(training?.iterations.map(({ testRmse }) => testRmse)).toEqual([undefined, undefined]);
      }
    },
  );

  it('predicts, evaluates and recommends there too', async () => {
    const device = secondDevice();
    await using session = await openWith(device);
    const plain = await cpuSession();
    const [here, there] = [await fit(session), await fit(plain)];
    const [some, same] = [session, plain].map((each) => each.from(ratingBatches(test)));
    expect(await here.evaluate(some)).toEqual(await there.evaluate(same));
    const list = (model: Model, exclude: Dataset) => rowsOf(model.recommendForAllUsers(3, { exclude }));
    expect(await list(here, some)).toEqual(await list(there, same));
    const alike = (model: Model) => rowsOf(model.similarItems('all', 2));
    expect(await alike(here)).toEqual(await alike(there));
    expect(device.ran.map(({ kernel }) => kernel)).toEqual(expect.arrayContaining(['predict', 'top-n']));
  });
});

describe('a device that is lost while training', () => {
  let clock = 0;
  beforeEach(() => {
    clock = 0;
    // A task takes a minute, all else no time: it is always time to copy.
    vi.spyOn(performance, 'now').mockImplementation(() => clock);
  });
  afterEach(() => vi.restoreAllMocks());

  /** Lost at the n-th half-iteration. */
  function losing(n: number) {
    let updates = 0;
    return secondDevice({
      before: (task: Task) => {
        clock += 60_000;
        if (task.kernel === 'update') updates++;
        if (updates >= n) throw new DeviceLostError('the GPU was lost', { phase: 'gpu' });
      },
    });
  }

  it('leaves the model of the last iteration that was copied', async () => {
    await using session = await openWith(losing(6));
    const error = await fit(session).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LostTrainingError);
    const { model, iteration, message, exitCode } = error as LostTrainingError;
    expect([iteration, exitCode]).toEqual([2, 5]);
    expect(message).toBe('train: the GPU was lost; the model of iteration 2 is kept');
    expect(model.training).toMatchObject({
      bestIteration: 2,
      iterations: [{ iteration: 1 }, { iteration: 2 }],
    });
    const plain = await cpuSession();
    expect(factorsOf(model)).toEqual(factorsOf(await fit(plain, { ...options, maxIter: 2 })));
  });

  it('leaves none before the first, and says so', async () => {
    await using session = await openWith(losing(2));
    const error = await fit(session).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DeviceLostError);
    expect(error).not.toBeInstanceOf(LostTrainingError);
    expect(String(error)).toMatch(
      /the GPU was lost; no iteration's factors had been copied to the host by then/,
    );
  });

  it('leaves the last epoch of SGD that was copied, and none before the first', async () => {
    const sgd = (session: Session, maxIter = 5) =>
      new SGD({ rank: 4, biases: true, maxIter, seed: 3, schedule: 'hogwild' }).fit(
        session.from(ratingBatches(rows)),
      );
    const losingAt = (n: number) => {
      let epochs = 0;
      return secondDevice({
        before: ({ kernel }: Task) => {
          clock += 60_000;
          if (kernel === 'sgd-block') epochs++;
          if (epochs >= n) throw new DeviceLostError('the GPU was lost', { phase: 'gpu' });
        },
      });
    };
    await using session = await openWith(losingAt(4));
    const error = await sgd(session).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LostTrainingError);
    const { model, iteration } = error as LostTrainingError;
    expect(model.training).toMatchObject({
      algorithm: 'sgd',
      bestIteration: iteration,
      iterations: { length: iteration },
    });
    // One thread steps the batches in their order, so that the same epochs give the same bits.
    await using again = await openWith(secondDevice());
    expect(factorsOf(model)).toEqual(factorsOf(await sgd(again, iteration)));
  });
});
