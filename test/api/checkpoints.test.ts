import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import type { Task } from '../../engine/task.ts';
import {
  ALS,
  type AlsOptions,
  CancelledError,
  DataError,
  type FitOptions,
  LostTrainingError,
  type Model,
  type ProgressEvent,
  Session,
  SGD,
  type SgdOptions,
  UsageError,
} from '../../index.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches, type Triple } from '../support/ratings.ts';
import { secondDevice } from '../support/devices/second-device.ts';

const above = mkdtempSync(join(tmpdir(), 'factorflow-resume-'));
const planted = plantedRatings(7, 150, 90, 5000);
const rows = planted.slice(600);
const held = planted.slice(0, 600);

let one: Session;
let two: Session;
beforeAll(async () => {
  [one, two] = [
    await Session.create({ workers: 1, device: 'cpu' }),
    await Session.create({ workers: 2, device: 'cpu' }),
  ];
});
afterAll(async () => {
  await Promise.all([one.close(), two.close()]);
  rmSync(above, { recursive: true });
});

let checkpointDir: string;
let folders = 0;
beforeEach(() => {
  checkpointDir = join(above, String(folders++));
});

interface Run extends FitOptions {
  readonly session?: Session;
  readonly ratings?: readonly Triple[];
  readonly tested?: readonly Triple[] | null;
}

function fit(
  trainer: ALS | SGD,
  { session = two, ratings = rows, tested = held, ...options }: Run = {},
): Promise<Model> {
  return trainer.fit(session.from(ratingBatches(ratings)), {
    ...(tested ? { validation: session.from(ratingBatches(tested)) } : {}),
    ...options,
  });
}

/** Cancels a run behind an iteration. */
async function cancelled(trainer: ALS | SGD, at: number, options: Run = {}): Promise<unknown> {
  const controller = new AbortController();
  return fit(trainer, {
    checkpointDir,
    checkpointInterval: 2,
    ...options,
    signal: controller.signal,
    onEvent: (event) => void (event.type === 'iteration' && event.iteration === at && controller.abort()),
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

function expectSame(got: Model, expected: Model): void {
  expect(
    [got.userFactors, got.itemFactors].map((batch) => batch.data.children[1].children[0].values),
  ).toEqual(
    [expected.userFactors, expected.itemFactors].map((batch) => batch.data.children[1].children[0].values),
  );
  // The metadata have all iterations without their seconds.
  expect(JSON.stringify(got.metadata)).toBe(JSON.stringify(expected.metadata));
}

const als = (more: AlsOptions = {}) => new ALS({ rank: 6, maxIter: 9, seed: 3, ...more });
const sgd = (more: SgdOptions = {}) =>
  new SGD({ rank: 6, maxIter: 9, seed: 3, schedule: 'wavefront', ...more });

describe('a run that was stopped gives the model of one that was not, bit for bit', () => {
  it.each<[string, ALS | SGD]>([
    ['als', als()],
    ['als by conjugate gradients', als({ solver: 'cg' })],
    ['als without biases', als({ biases: false })],
    ['nonnegative als', als({ nonnegative: true })],
    ['als that keeps the best', als({ regParam: 1e-6, regOffset: 0, earlyStop: 20 })],
    ['implicit als', new ALS({ rank: 6, maxIter: 9, implicitPrefs: true, unobservedWeight: 0.1 })],
    [
      'implicit als that keeps the best ranking',
      new ALS({ rank: 6, maxIter: 9, implicitPrefs: true, earlyStop: 9, earlyStopMetric: 'ndcg@5' }),
    ],
    ['sgd in waves', sgd()],
    ['sgd by blocks', sgd({ schedule: 'blocks' })],
    ['sgd with AdaGrad', sgd({ rate: 'adagrad', biases: false })],
    ['sgd with the bold driver', sgd({ rate: 'bold', regParam: 0.01 })],
    [
      'sgd that keeps the best',
      sgd({ rate: 'constant', learningRate: 0.3, regParam: 0, regOffset: 0, earlyStop: 20 }),
    ],
    ['sgd that is run again with half the rate', sgd({ rate: 'constant', learningRate: 0.5 })],
  ])('%s', async (_, trainer) => {
    const expected = await fit(trainer);
    const error = await cancelled(trainer, 5);
    expect(error).toBeInstanceOf(CancelledError);
    expect(String(error)).toMatch(
      /The checkpoint of iteration 4 is .*checkpoint-00000004: go on from it with resume: true$/,
    );
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
    // The schedule of SGD is that of the checkpoint, whether workers are as many or not.
    const got = await fit(trainer, { checkpointDir, checkpointInterval: 2, resume: true, session: one });
    expect(got.training?.resumedFrom).toEqual({
      iteration: 4,
      checkpoint: join(checkpointDir, 'checkpoint-00000004'),
      planChanges: [],
    });
    expectSame(got, expected);
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000008', 'checkpoint-00000009']);
  });

  it('Hogwild! of one thread, whose batches have another order in each epoch', async () => {
    const trainer = sgd({ schedule: 'hogwild' });
    const expected = await fit(trainer, { session: one });
    await cancelled(trainer, 7, { session: one });
    expectSame(await fit(trainer, { session: one, checkpointDir, resume: true }), expected);
  });

  it('where the best iteration lies before the checkpoint, and the run ends early', async () => {
    const trainer = als({ regParam: 1e-6, regOffset: 0, earlyStop: 4, maxIter: 30 });
    const expected = await fit(trainer);
    const { bestIteration, iterations } = expected.training!;
    expect(iterations.length).toBe(bestIteration + 4);
    await cancelled(trainer, bestIteration + 3, { checkpointInterval: 1 });
    expect(
      readFileSync(
        join(checkpointDir, `checkpoint-${String(bestIteration + 2).padStart(8, '0')}`, 'SHA256SUMS'),
        'utf8',
      ),
    ).toContain('best-users-00000.f32');
    expectSame(await fit(trainer, { checkpointDir, resume: true, checkpointInterval: 1 }), expected);
    // A run that was killed before it removed the one before the last two.
    cpSync(join(checkpointDir, readdirSync(checkpointDir)[0]), join(checkpointDir, 'checkpoint-00000001'), {
      recursive: true,
    });
    // The checkpoint of the end says that it is the end.
    const again = await fit(trainer, { checkpointDir, resume: true });
    expectSame(again, expected);
    expect(again.training?.resumedFrom?.iteration).toBe(iterations.length);
    expect(readdirSync(checkpointDir)).toHaveLength(2);
  });

  it('goes on behind the last iteration where there are to be more', async () => {
    await fit(als({ maxIter: 5 }), { checkpointDir });
    expect(readdirSync(checkpointDir)).toEqual(['checkpoint-00000005']);
    const got = await fit(als(), { checkpointDir, resume: true });
    expect(got.training?.resumedFrom?.iteration).toBe(5);
    expectSame(got, await fit(als()));
  });

  it('is the same with checkpoints as without, which the plan shows', async () => {
    expectSame(await fit(als(), { checkpointDir, checkpointInterval: 1 }), await fit(als()));
    const plan = await als().plan(two.from(ratingBatches(rows)), { checkpointDir, checkpointInterval: 4 });
    const { checkpoint, memory } = plan.plan;
    expect(checkpoint).toMatchObject({ every: 4, stage: { bytesWritten: 4 * (150 + 90) * 7 } });
    expect(memory.host).toBe(
      (await als().plan(two.from(ratingBatches(rows)))).plan.memory.host + 4 * (150 + 90) * 7,
    );
    expect(String(plan)).toMatch(/write-checkpoint +checkpoint +host .* 3 /);
  });
});

describe('resume', () => {
  it('starts from the beginning where there is no checkpoint, and says so', async () => {
    const notes: string[] = [];
    const got = await fit(als(), {
      checkpointDir,
      resume: true,
      onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
    });
    expect(notes).toContain(`no checkpoint in ${checkpointDir}: training starts from the beginning`);
    expect(got.training).not.toHaveProperty('resumedFrom');
    expectSame(got, await fit(als()));
  });

  it('takes the checkpoint before one that is damaged, says so, and puts a good one in its place', async () => {
    await cancelled(als(), 7);
    appendFileSync(join(checkpointDir, 'checkpoint-00000006/items-00000.f32'), 'x');
    const warnings: string[] = [];
    const got = await fit(als(), {
      checkpointDir,
      checkpointInterval: 2,
      resume: true,
      onEvent: (event) => void (event.type === 'warning' && warnings.push(event.text)),
    });
    expect(warnings).toEqual([
      expect.stringMatching(
        /damaged or foreign: it has 2161 bytes in place of 2160 .*checkpoint-00000006\/items-00000\.f32\); the checkpoint before it is tried/,
      ),
    ]);
    expect(got.training?.resumedFrom?.iteration).toBe(4);
    expectSame(got, await fit(als()));
  });

  it('refuses a folder whose checkpoints are all damaged, with each of them, and leaves them there', async () => {
    await cancelled(als(), 5);
    for (const name of readdirSync(checkpointDir)) rmSync(join(checkpointDir, name, 'checkpoint.json'));
    const refused = fit(als(), { checkpointDir, resume: true });
    await expect(refused).rejects.toThrow(DataError);
    await expect(refused).rejects.toThrow(
      /no checkpoint can be used: .*checkpoint-00000004.*; .*checkpoint-00000002.*Remove them, or give another checkpointDir/,
    );
    expect(readdirSync(checkpointDir)).toHaveLength(2);
  });

  it('shows no control characters of a checkpoint', async () => {
    await cancelled(als(), 3);
    const file = join(checkpointDir, 'checkpoint-00000002', 'checkpoint.json');
    const saved = JSON.parse(readFileSync(file, 'utf8')) as Record<string, object>;
    const restate = (change: object) => {
      writeFileSync(file, JSON.stringify({ ...saved, ...change }));
      const sums = join(checkpointDir, 'checkpoint-00000002', 'SHA256SUMS');
      writeFileSync(
        sums,
        readFileSync(sums, 'utf8').replace(
          /.*checkpoint.json/,
          `${createHash('sha256').update(readFileSync(file)).digest('hex')}  checkpoint.json`,
        ),
      );
    };
    restate({ params: { ...saved.params, 'a\u001b]0;\u0007': 'b\u009b' } });
    await expect(fit(als(), { checkpointDir, resume: true })).rejects.toThrow(
      '"a\\u001b]0;\\u0007" is "b\ufffd" in the checkpoint, and not there here',
    );
    restate({ package: 'other\u001b[2J\n\u009b 1.0' });
    const notes: string[] = [];
    await fit(als(), {
      checkpointDir,
      resume: true,
      onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
    });
    expect(notes).toContainEqual(
      expect.stringMatching(/^training goes on from iteration 2 of .*, which other2J 1\.0 wrote$/),
    );
  });

  it.each<[string, ALS | SGD, Run, RegExp]>([
    [
      'parameters',
      als({ regParam: 0.3, rank: 5 }),
      {},
      /does not fit: rank is 6 in the checkpoint, and 5 here; regParam is 0\.02 in the checkpoint, and 0\.3 here/,
    ],
    ['a seed', als({ seed: 4 }), {}, /seed is 3 in the checkpoint, and 4 here/],
    [
      'a default of before',
      als({ cgSteps: 5 }),
      {},
      /cgSteps is "auto" in the checkpoint, and 5 here.*keeps the values of its run, the defaults of then among them: to go on from it give cgSteps: 'auto', or give another checkpointDir/,
    ],
    ['an algorithm', sgd(), {}, /algorithm is "als" in the checkpoint, and "sgd" here/],
    ['fewer iterations', als({ maxIter: 3 }), {}, /it is of iteration 4, and maxIter is 3/],
    ['fewer ratings', als(), { ratings: rows.slice(1) }, /ratings: 3482 in the checkpoint, and 3481 here/],
    [
      'other values',
      als(),
      { ratings: rows.map((row, at) => (at === 9 ? { ...row, rating: row.rating + 1 } : row)) },
      /does not fit: other ratings of the same users and items/,
    ],
    [
      'other ids',
      als(),
      {
        ratings: rows.map((row) => ({ ...row, user: row.user + 1000 })),
        tested: held.map((row) => ({ ...row, user: row.user + 1000 })),
      },
      /does not fit: other users/,
    ],
    [
      'no validation set',
      als(),
      { tested: null },
      /pairs of the validation set: \d+ in the checkpoint, and null here/,
    ],
    [
      'another validation set',
      als(),
      { tested: held.map((row) => ({ ...row, rating: 1 })) },
      /does not fit: another validation set/,
    ],
  ])('refuses %s, and names the difference', async (_, trainer, run, message) => {
    await cancelled(als(), 5);
    const refused = fit(trainer, { checkpointDir, resume: true, ...run });
    await expect(refused).rejects.toThrow(UsageError);
    await expect(refused).rejects.toThrow(message);
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
  });

  it('takes the ratings in any order', async () => {
    await cancelled(als(), 5);
    expectSame(
      await fit(als(), { checkpointDir, resume: true, ratings: rows.toReversed() }),
      await fit(als()),
    );
  });
});

describe('checkpoints', () => {
  it('are refused in a folder that has some, without resume', async () => {
    await cancelled(als(), 5);
    await expect(fit(als(), { checkpointDir })).rejects.toThrow(
      /has the checkpoint of iteration 4 already .*Go on from it with resume: true, or give another checkpointDir/,
    );
  });

  it('are refused in a folder that another run uses, which ends well', async () => {
    let refused: Promise<unknown> | undefined;
    const onEvent = (event: ProgressEvent) =>
      void (
        event.type === 'iteration' &&
        (refused ??= fit(als(), { checkpointDir, resume: true }).catch((error: unknown) => error))
      );
    const model = await fit(als(), { checkpointDir, checkpointInterval: 1, onEvent });
    const error = await refused;
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toMatch(new RegExp(`in use by process ${process.pid} on this machine, since`));
    expectSame(model, await fit(als()));
  });

  it('that cannot be written are told of, and the run goes on', async () => {
    const warnings: string[] = [];
    const onEvent = (event: ProgressEvent) => {
      if (event.type === 'iteration' && event.iteration === 3)
        writeFileSync(join(checkpointDir, 'checkpoint-00000004'), 'a file in its place');
      if (event.type === 'warning') warnings.push(event.text);
    };
    const model = await fit(als(), { checkpointDir, checkpointInterval: 4, onEvent });
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the checkpoint of iteration 4 could not be written, and training goes on without it: .*exists and is a file/,
      ),
    ]);
    expectSame(model, await fit(als()));
    expect(readdirSync(checkpointDir).sort()).toEqual([
      'checkpoint-00000004',
      'checkpoint-00000008',
      'checkpoint-00000009',
    ]);
  });

  it.each<[FitOptions, RegExp]>([
    [{ checkpointInterval: 2 }, /^checkpointInterval acts only with checkpointDir/],
    [{ resume: true }, /^resume: true acts only with checkpointDir/],
    [{ checkpointDir: '' }, /^checkpointDir must be the path of a folder, got ""/],
    [
      { checkpointDir: 'x', checkpointInterval: 0 },
      /^checkpointInterval must be a whole number from 1 to 1,000,000, got 0/,
    ],
    [{ checkpointDir: 'x', resume: 'yes' as never }, /^resume must be true or false, got "yes"/],
  ])('with the options %j are refused', async (options, message) => {
    await expect(fit(als(), options)).rejects.toThrow(message);
    await expect(fit(sgd(), options)).rejects.toThrow(message);
  });
});

describe('the only device that is lost', () => {
  it.each<[string, ALS | SGD, string]>([
    ['als', als(), 'update'],
    ['sgd', sgd({ schedule: 'hogwild', rate: 'adagrad' }), 'sgd-block'],
  ])('of %s leaves a checkpoint of its last copy, from which the CPU goes on', async (_, trainer, kernel) => {
    // Each task takes a minute of the clock by which copies are made.
    let clock = 0;
    const now = vi.spyOn(performance, 'now').mockImplementation(() => clock);
    let tasks = 0;
    const device = secondDevice({
      before: (task: Task) => {
        clock += 60_000;
        if (task.kernel === kernel && ++tasks > (kernel === 'update' ? 12 : 6))
          throw new DeviceLostError('the GPU was lost', { phase: 'gpu' });
      },
    });
    const session = await Session.create({ device: 'cpu', workers: 1 });
    (session.context().executor.devices as Device[]).push(device);
    const error = await fit(trainer, { session, checkpointDir, checkpointInterval: 100 }).catch(
      (thrown: unknown) => thrown,
    );
    now.mockRestore();
    await session.close();
    expect(error).toBeInstanceOf(LostTrainingError);
    const { checkpoint, exitCode, message, iteration } = error as LostTrainingError;
    expect(exitCode).toBe(5);
    expect(checkpoint).toBe(join(checkpointDir, `checkpoint-${String(iteration).padStart(8, '0')}`));
    expect(message).toMatch(/Go on from the checkpoint .* with resume: true, on any device$/);
    const notes: string[] = [];
    const got = await fit(trainer, {
      session: one,
      checkpointDir,
      resume: true,
      onEvent: (event) => void (event.type === 'note' && notes.push(event.text)),
    });
    expect(got.training?.resumedFrom).toMatchObject({
      iteration,
      planChanges: expect.arrayContaining([
        expect.stringMatching(/devices\[0\]\.place is "gpu:0" in the checkpoint, and "cpu" here/),
      ]),
    });
    expect(notes).toContainEqual(expect.stringMatching(/^the plan has changed: /));
    const expected = await fit(trainer, { session: one });
    // The second device computes what the CPU does; by AdaGrad from the sums of the checkpoint.
    expect(got.training?.iterations.at(-1)?.loss).toBeCloseTo(expected.training!.iterations.at(-1)!.loss, 3);
  });
});
