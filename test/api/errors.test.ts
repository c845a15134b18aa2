import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deserializeError, serializeError } from '../../engine/errors.ts';
import {
  ALS,
  CancelledError,
  CapacityError,
  DataError,
  DeviceLostError,
  DivergedError,
  Session,
  SGD,
  UsageError,
} from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { isDeep } from '../support/deep.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import type { Device } from '../../engine/run/device.ts';
import { secondDevice } from '../support/devices/second-device.ts';

it.each([
  [new UsageError('x'), 'USAGE', 2],
  [new DataError('x'), 'DATA', 3],
  [new CapacityError('x'), 'CAPACITY', 4],
  [new DivergedError('x'), 'DIVERGED', 5],
  [new DeviceLostError('x'), 'DEVICE_LOST', 5],
  [new CancelledError(), 'CANCELLED', 130],
])('%s has its code, also on the other side of a thread', (error, code, exitCode) => {
  expect(error).toMatchObject({ code, exitCode });
  expect(deserializeError(structuredClone(serializeError(error)))).toMatchObject({
    code,
    exitCode,
    message: error.message,
  });
});

it('an error of the system keeps its code on the other side of a thread', () => {
  const facts = { code: 'EIO', errno: -5, syscall: 'close' };
  const system = Object.assign(new Error('EIO: i/o error, close'), facts);
  const error = deserializeError(structuredClone(serializeError(system)));
  expect(error).toMatchObject({ code: 'EIO', syscall: 'close', message: system.message });
});

it('training that diverges reports the place', async () => {
  const session = await cpuSession({ workers: 1 });
  // There are no known ratings that cannot be trained on, so a device reports a row without a solution.
  await using broken = await Session.create({ workers: 1, device: 'cpu' });
  const device = secondDevice();
  const run: Device['run'] = async (task, signal) => {
    const outcome = await device.run(task, signal);
    return task.kernel === 'update' ? { ...outcome, values: { badRow: 3 } } : outcome;
  };
  (broken.context().executor.devices as Device[]).push({ ...device, run });
  const failure = async (run: Promise<unknown>) =>
    run.then(
      () => expect.fail('it ended well'),
      (error: unknown) => error as DivergedError,
    );
  const rows = randomRatings(3, 30, 30, 300).map((row) => ({ ...row, rating: 4 ** 6 * row.rating }));
  const als = await failure(new ALS({ rank: 4, regParam: 4 ** 5 }).fit(broken.from(ratingBatches(rows))));
  expect(als).toMatchObject({
    name: 'DivergedError',
    iteration: expect.any(Number),
    side: expect.stringMatching(/^(users|items)$/),
  });
  expect(als.message).toContain(
    `iteration ${als.iteration}, side ${als.side}: the normal equations of ${als.side?.slice(0, -1)} ${als.id} (`,
  );
  // The advice is for this row, in the unit of the given ratings.
  const own = rows.filter(({ user, item }) => `${als.side === 'users' ? user : item}` === `${als.id}`);
  const largest = Math.max(...own.map(({ rating }) => rating));
  expect(als.message).toContain(`the ratings, of which this row's largest is ${largest}, explain it`);
  const sgd = await failure(
    new SGD({ rank: 4, learningRate: 1e6 }).fit(session.from(ratingBatches(randomRatings(3, 20, 20, 200)))),
  );
  expect([sgd.code, sgd.iteration, sgd.side, sgd.id]).toEqual(['DIVERGED', 1, undefined, undefined]);
  const { iteration, side, id } = deserializeError(structuredClone(serializeError(als))) as DivergedError;
  expect([iteration, side, id]).toEqual([als.iteration, als.side, als.id]);
});

it.each([
  ['cg', true],
  ['cholesky', false],
] as const)(
  'the advice for a loss beyond all numbers by solver %s names another solver: %j',
  async (solver, another) => {
    await using session = await Session.create({ workers: 1, device: 'cpu' });
    const device = secondDevice();
    const run: Device['run'] = async (task, signal) => {
      const outcome = await device.run(task, signal);
      return task.kernel === 'squared-error'
        ? { ...outcome, values: { ...outcome.values, squared: Number.POSITIVE_INFINITY } }
        : outcome;
    };
    (session.context().executor.devices as Device[]).push({ ...device, run });
    const fit = new ALS({ rank: 4, solver }).fit(session.from(ratingBatches(randomRatings(3, 30, 30, 300))));
    await expect(fit).rejects.toThrow(
      /^train: iteration \d+, side users: the loss is Infinity.* Raise regParam/,
    );
    if (another) await expect(fit).rejects.toThrow(/, or use solver cholesky/);
    else await expect(fit).rejects.not.toThrow(/cholesky/);
  },
);

it('a cancelled run throws CancelledError with the reason of the signal, wherever it was', async () => {
  const session = await cpuSession({ workers: 2 });
  const ratings = session.from(ratingBatches(randomRatings(3, 200, 100, 5000), 500));
  const model = await new ALS({ rank: 4, maxIter: 1 }).fit(ratings);
  const reason = new Error('the user went away');
  const outcomeOf = (run: Promise<unknown>) =>
    run.then(
      () => 'it ended well',
      (error: unknown) => error,
    );
  const cancelled = { name: 'CancelledError', code: 'CANCELLED', cause: reason };

  // At each event of a training in turn.
  const train = (signal: AbortSignal, onEvent: () => void) =>
    new ALS({ rank: 4, maxIter: 2 }).fit(ratings, { validation: ratings, signal, onEvent });
  let events = 0;
  await train(new AbortController().signal, () => void events++);
  expect(events).toBeGreaterThan(5);
  for (let at = 0; at < events - 1; at += isDeep ? 1 : 3) {
    const controller = new AbortController();
    let seen = 0;
    expect(
      await outcomeOf(train(controller.signal, () => void (seen++ === at && controller.abort(reason)))),
      `event ${at}`,
    ).toMatchObject(cancelled);
  }

  const signal = AbortSignal.abort(reason);
  const folder = join(tmpdir(), `factorflow-cancelled-${process.pid}`);
  const drain = async () => {
    for await (const batch of await model.recommendForAllUsers(3).stream({ signal }))
      expect(batch).toBeUndefined();
  };
  for (const run of [
    drain(),
    model.evaluate(ratings, { signal }),
    model.save(folder, { signal }),
    ratings.write.csv(`${folder}.csv`, { signal }),
    Session.create({ device: 'gpu', signal }),
  ]) {
    expect(await outcomeOf(run)).toMatchObject(cancelled);
  }
});
