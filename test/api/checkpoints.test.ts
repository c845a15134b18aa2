import { createHash } from 'node:crypto';
import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import { PLAN_VERSION } from '../../engine/plan/physical-plan.ts';
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
import { cpuSession } from '../support/cpu-session.ts';
import { secondDevice } from '../support/devices/second-device.ts';
import { plantedRatings } from '../support/planted.ts';
import { ratingBatches, type Triple } from '../support/ratings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const [one, two] = [await cpuSession({ workers: 1 }), await cpuSession()];
const above = temporaryFolder();
const planted = plantedRatings(7, 150, 90, 2000);
const [held, rows] = [planted.slice(0, 300), planted.slice(300)];

let checkpointDir: string;
let folders = 0;
beforeEach(() => {
  checkpointDir = join(above, String(folders++));
});

const als = (more: AlsOptions = {}) => new ALS({ rank: 6, maxIter: 9, seed: 3, ...more });
const sgd = (more: SgdOptions = {}) =>
  new SGD({ rank: 6, maxIter: 9, seed: 3, schedule: 'wavefront', ...more });

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

/** Continues in the folder of the test. */
const resumed = (trainer: ALS | SGD, options: Run = {}) =>
  fit(trainer, { checkpointDir, resume: true, ...options });

/** Cancels a run after an iteration. */
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
  const bits = ({ userFactors, itemFactors }: Model) =>
    [userFactors, itemFactors].map((batch) => batch.data.children[1].children[0].values);
  expect(bits(got)).toEqual(bits(expected));
  // The metadata have all iterations without their seconds.
  expect(JSON.stringify(got.metadata)).toBe(JSON.stringify(expected.metadata));
}

/** The model of `als()` that was not stopped. */
const whole = await fit(als());
const stopped = join(above, 'stopped');
await cancelled(als(), 5, { checkpointDir: stopped });
/** The checkpoints of iterations 2 and 4 of `als()`, in the folder of the test. */
const stoppedHere = () => cpSync(stopped, checkpointDir, { recursive: true });

/** Collects the texts of events of a type. */
function texts(type: 'note' | 'warning') {
  const found: string[] = [];
  const onEvent = (event: ProgressEvent) =>
    void (
      (event.type === 'note' || event.type === 'warning') &&
      event.type === type &&
      found.push(event.text)
    );
  return { found, onEvent };
}

/** Changes a file of a checkpoint, and its line in the checksums. */
function change(checkpoint: string, name: string, edit: (bytes: Buffer) => Buffer | string): void {
  const [file, sums] = [name, 'SHA256SUMS'].map((one) => join(checkpointDir, checkpoint, one));
  writeFileSync(file, edit(readFileSync(file)));
  const sum = createHash('sha256').update(readFileSync(file)).digest('hex');
  writeFileSync(sums, readFileSync(sums, 'utf8').replace(new RegExp(`.*(?=  ${name})`), sum));
}

describe('a run that was stopped gives the model of one that was not, bit for bit', () => {
  const ranked = { implicitPrefs: true, earlyStop: 9, earlyStopMetric: 'ndcg@5' } as const;

  it.each<[string, ALS | SGD]>([
    ['als that keeps the best', als({ regParam: 1e-6, regOffset: 0, earlyStop: 20 })],
    ['implicit als', als({ implicitPrefs: true, unobservedWeight: 0.1 })],
    ['implicit als that keeps the best ranking', als(ranked)],
    ['sgd in waves', sgd()],
    ['sgd with AdaGrad', sgd({ schedule: 'blocks', rate: 'adagrad', biases: false })],
    ['sgd with the bold driver', sgd({ rate: 'bold', regParam: 0.01 })],
    ['sgd that is run again with half the rate', sgd({ rate: 'constant', learningRate: 0.5 })],
  ])('%s', async (_, trainer) => {
    const expected = await fit(trainer);
    const error = await cancelled(trainer, 5);
    expect(error).toBeInstanceOf(CancelledError);
    expect(String(error)).toMatch(
      /The checkpoint of iteration 4 is .*checkpoint-00000004: continue from it with resume: true$/,
    );
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
    // The schedule of SGD comes from the checkpoint, also with another number of workers.
    const got = await resumed(trainer, { checkpointInterval: 2, session: one });
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
    await cancelled(trainer, 7, { session: one });
    expectSame(await resumed(trainer, { session: one }), await fit(trainer, { session: one }));
  });

  it('where the best iteration lies before the checkpoint, and the run ends early', async () => {
    const trainer = als({ regParam: 1e-6, regOffset: 0, earlyStop: 4, maxIter: 30 });
    const expected = await fit(trainer);
    const { bestIteration, iterations } = expected.training!;
    expect(iterations.length).toBe(bestIteration + 4);
    await cancelled(trainer, bestIteration + 3, { checkpointInterval: 1 });
    const after = `checkpoint-${String(bestIteration + 2).padStart(8, '0')}`;
    expect(readFileSync(join(checkpointDir, after, 'SHA256SUMS'), 'utf8')).toContain('best-users-00000.f32');
    expectSame(await resumed(trainer, { checkpointInterval: 1 }), expected);
    // Simulates a run that was killed before it removed its third-newest checkpoint.
    cpSync(join(checkpointDir, readdirSync(checkpointDir)[0]), join(checkpointDir, 'checkpoint-00000001'), {
      recursive: true,
    });
    // The checkpoint of the end says that it is the end.
    const again = await resumed(trainer);
    expectSame(again, expected);
    expect(again.training?.resumedFrom?.iteration).toBe(iterations.length);
    expect(readdirSync(checkpointDir)).toHaveLength(2);
  });

  it('goes on behind the last iteration where there are to be more, with ratings in any order', async () => {
    await fit(als({ maxIter: 5 }), { checkpointDir });
    expect(readdirSync(checkpointDir)).toEqual(['checkpoint-00000005']);
    const got = await resumed(als(), { ratings: rows.toReversed() });
    expect(got.training?.resumedFrom?.iteration).toBe(5);
    expectSame(got, whole);
  });

  it('is the same with checkpoints as without, which the plan shows', async () => {
    expectSame(await fit(als(), { checkpointDir, checkpointInterval: 1 }), whole);
    const plan = await als().plan(two.from(ratingBatches(rows)), { checkpointDir, checkpointInterval: 4 });
    const without = await als().plan(two.from(ratingBatches(rows)));
    const bytes = 4 * (whole.userCount + whole.itemCount) * 7;
    expect(plan.plan.checkpoint).toMatchObject({ every: 4, stage: { bytesWritten: bytes } });
    expect(plan.plan.memory.host).toBe(without.plan.memory.host + bytes);
    expect(String(plan)).toMatch(/write-checkpoint +checkpoint +host .* 3 /);
  });

  it('a run goes on from a checkpoint of an earlier release with a plan made anew, and says so', async () => {
    stoppedHere();
    change('checkpoint-00000004', 'checkpoint.json', (before) => {
      const after = `${before}`.replace(`"planVersion":${PLAN_VERSION}`, `"planVersion":${PLAN_VERSION - 1}`);
      expect(after).not.toBe(`${before}`);
      return after;
    });
    const { found, onEvent } = texts('note');
    const got = await resumed(als(), { onEvent });
    const refused = `this plan has version ${PLAN_VERSION - 1}, and this release runs plans of version ${PLAN_VERSION}`;
    expect(got.training?.resumedFrom).toMatchObject({
      iteration: 4,
      planChanges: [expect.stringContaining(refused)],
    });
    expect(found).toContainEqual(expect.stringContaining(`the plan has changed: ${refused}`));
    expectSame(got, whole);
  });
});

describe('checkpoints', () => {
  it('are refused in a folder that has some, without resume', async () => {
    stoppedHere();
    await expect(fit(als(), { checkpointDir })).rejects.toThrow(
      /has the checkpoint of iteration 4 already .*Continue from it with resume: true, or give another checkpointDir/,
    );
  });

  it('are refused in a folder that another run uses, which ends well', async () => {
    let refused: Promise<unknown> | undefined;
    const onEvent = (event: ProgressEvent) =>
      void (event.type === 'iteration' && (refused ??= resumed(als()).catch((error: unknown) => error)));
    const model = await fit(als(), { checkpointDir, checkpointInterval: 1, onEvent });
    const error = await refused;
    expect(error).toBeInstanceOf(UsageError);
    expect(String(error)).toMatch(new RegExp(`in use by process ${process.pid} on this machine, since`));
    expectSame(model, whole);
  });

  it('that cannot be written are told of, and the run goes on', async () => {
    const warnings: string[] = [];
    const onEvent = (event: ProgressEvent) => {
      if (event.type === 'iteration' && event.iteration === 3)
        writeFileSync(join(checkpointDir, 'checkpoint-00000004'), 'a file in its place');
      if (event.type === 'warning') warnings.push(event.text);
    };
    expectSame(await fit(als(), { checkpointDir, checkpointInterval: 4, onEvent }), whole);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the checkpoint of iteration 4 could not be written, and training continues without it: .*exists and is a file/,
      ),
    ]);
    expect(readdirSync(checkpointDir).sort()).toEqual(
      [4, 8, 9].map((iteration) => `checkpoint-0000000${iteration}`),
    );
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

describe('resume', () => {
  it('starts from the beginning where there is no checkpoint, and says so', async () => {
    const { found, onEvent } = texts('note');
    const got = await resumed(als(), { onEvent });
    expect(found).toContain(`no checkpoint in ${checkpointDir}: training starts from the beginning`);
    expect(got.training).not.toHaveProperty('resumedFrom');
    expectSame(got, whole);
  });

  it('takes the checkpoint before one that is damaged, says so, and puts a good one in its place', async () => {
    stoppedHere();
    appendFileSync(join(checkpointDir, 'checkpoint-00000004/items-00000.f32'), 'x');
    const { found, onEvent } = texts('warning');
    const got = await resumed(als(), { checkpointInterval: 2, onEvent });
    expect(found).toEqual([
      expect.stringMatching(
        /damaged or foreign: it has \d+1 bytes in place of \d+0 .*checkpoint-00000004\/items-00000\.f32\); the checkpoint before it is tried/,
      ),
    ]);
    expect(got.training?.resumedFrom?.iteration).toBe(2);
    expectSame(got, whole);
  });

  it('refuses a folder whose checkpoints are all damaged, with each of them, and leaves them there', async () => {
    stoppedHere();
    for (const name of readdirSync(checkpointDir)) rmSync(join(checkpointDir, name, 'checkpoint.json'));
    const refused = resumed(als());
    await expect(refused).rejects.toThrow(DataError);
    await expect(refused).rejects.toThrow(
      /no checkpoint can be used: .*checkpoint-00000004.*; .*checkpoint-00000002.*Remove them, or give another checkpointDir/,
    );
    expect(readdirSync(checkpointDir)).toHaveLength(2);
  });

  it.each([Number.NaN, Number.NEGATIVE_INFINITY])(
    'refuses factors that are %d, also where no iteration is left, and takes the checkpoint before',
    async (bad) => {
      await fit(als(), { checkpointDir, checkpointInterval: 8 });
      const spoil = (checkpoint: string) =>
        change(checkpoint, 'items-00000.f32', (bytes) => {
          bytes.writeFloatLE(bad, 4 * 17);
          return bytes;
        });
      spoil('checkpoint-00000009');
      const got = await resumed(als(), { checkpointInterval: 100 });
      expect(got.training?.resumedFrom?.iteration).toBe(8);
      expectSame(got, whole);
      for (const checkpoint of readdirSync(checkpointDir)) spoil(checkpoint);
      await expect(resumed(als())).rejects.toThrow(
        new RegExp(`no checkpoint can be used: .*the number at position 17 is ${bad} .*items-00000.f32`),
      );
    },
  );

  it('shows no control characters of a checkpoint', async () => {
    stoppedHere();
    rmSync(join(checkpointDir, 'checkpoint-00000002'), { recursive: true });
    const saved = JSON.parse(
      readFileSync(join(checkpointDir, 'checkpoint-00000004', 'checkpoint.json'), 'utf8'),
    ) as Record<string, object>;
    const restate = (more: object) =>
      change('checkpoint-00000004', 'checkpoint.json', () => JSON.stringify({ ...saved, ...more }));
    restate({ params: { ...saved.params, 'a\u001b]0;\u0007': 'b\u009b' } });
    await expect(resumed(als())).rejects.toThrow(
      '"a\\u001b]0;\\u0007" is "b\ufffd" in the checkpoint, and not there here',
    );
    restate({ package: 'other\u001b[2J\n\u009b 1.0' });
    const { found, onEvent } = texts('note');
    await resumed(als(), { onEvent });
    expect(found).toContainEqual(
      expect.stringMatching(/^training continues from iteration 4 of .*, which other2J 1\.0 wrote$/),
    );
  });

  const moved = (of: readonly Triple[]) => of.map((row) => ({ ...row, user: row.user + 1000 }));

  it.each<[string, ALS | SGD, Run, RegExp]>([
    [
      'parameters',
      als({ regParam: 0.3, rank: 5 }),
      {},
      /does not fit: rank is 6 in the checkpoint, and 5 here; regParam is 0\.02 in the checkpoint, and 0\.3 here/,
    ],
    [
      'a default of before',
      als({ cgSteps: 5 }),
      {},
      /cgSteps is "auto" in the checkpoint, and 5 here.*keeps the values of its run, including the defaults at that time: to continue it give cgSteps: 'auto', or give another checkpointDir/,
    ],
    ['an algorithm', sgd(), {}, /algorithm is "als" in the checkpoint, and "sgd" here/],
    ['fewer iterations', als({ maxIter: 3 }), {}, /it is of iteration 4, and maxIter is 3/],
    ['fewer ratings', als(), { ratings: rows.slice(1) }, /ratings: \d+ in the checkpoint, and \d+ here/],
    [
      'other values',
      als(),
      { ratings: rows.map((row, at) => (at === 9 ? { ...row, rating: row.rating + 1 } : row)) },
      /does not fit: other ratings of the same users and items/,
    ],
    ['other ids', als(), { ratings: moved(rows), tested: moved(held) }, /does not fit: other users/],
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
    stoppedHere();
    const refused = resumed(trainer, run);
    await expect(refused).rejects.toThrow(UsageError);
    await expect(refused).rejects.toThrow(message);
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
  });
});

describe('the only device that is lost', () => {
  it.each<[string, ALS | SGD, string]>([
    ['als', als(), 'update'],
    ['sgd', sgd({ schedule: 'hogwild', rate: 'adagrad' }), 'sgd-block'],
  ])('of %s leaves a checkpoint of its last copy, from which the CPU goes on', async (_, trainer, kernel) => {
    // The clock that decides when factors are copied advances by a minute in each task.
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
    expect(message).toMatch(/Continue from the checkpoint .* with resume: true, on any device$/);
    const { found, onEvent } = texts('note');
    const got = await resumed(trainer, { session: one, onEvent });
    expect(got.training?.resumedFrom).toMatchObject({
      iteration,
      planChanges: expect.arrayContaining([
        expect.stringMatching(/devices\[0\]\.place is "gpu:0" in the checkpoint, and "cpu" here/),
      ]),
    });
    expect(found).toContainEqual(expect.stringMatching(/^the plan has changed: /));
    const expected = await fit(trainer, { session: one });
    // The second device computes the same as the CPU; with AdaGrad it starts from the checkpoint's sums.
    expect(got.training?.iterations.at(-1)?.loss).toBeCloseTo(expected.training!.iterations.at(-1)!.loss, 3);
  });
});
