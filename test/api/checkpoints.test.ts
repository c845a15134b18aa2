import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { DeviceLostError } from '../../engine/errors.ts';
import type { Device } from '../../engine/run/device.ts';
import type { Task } from '../../engine/task.ts';
import {
  ALS,
  CancelledError,
  type FitOptions,
  LostTrainingError,
  type ProgressEvent,
  Session,
  SGD,
  UsageError,
} from '../../index.ts';
import { ratingBatches } from '../support/ratings.ts';
import { secondDevice } from '../support/devices/second-device.ts';
import { als, cancelled, checkpointDir, expectSame, fit, one, rows, sgd, two } from './checkpointed-fits.ts';

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
      /The checkpoint of iteration 4 is .*checkpoint-00000004: continue from it with resume: true$/,
    );
    expect(readdirSync(checkpointDir).sort()).toEqual(['checkpoint-00000002', 'checkpoint-00000004']);
    // The schedule of SGD comes from the checkpoint, also with another number of workers.
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
    // Simulates a run that was killed before it removed its third-newest checkpoint.
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

describe('checkpoints', () => {
  it('are refused in a folder that has some, without resume', async () => {
    await cancelled(als(), 5);
    await expect(fit(als(), { checkpointDir })).rejects.toThrow(
      /has the checkpoint of iteration 4 already .*Continue from it with resume: true, or give another checkpointDir/,
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
        /^the checkpoint of iteration 4 could not be written, and training continues without it: .*exists and is a file/,
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
    // The second device computes the same as the CPU; with AdaGrad it starts from the checkpoint's sums.
    expect(got.training?.iterations.at(-1)?.loss).toBeCloseTo(expected.training!.iterations.at(-1)!.loss, 3);
  });
});
