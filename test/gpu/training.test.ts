/** Training on a GPU from end to end, on the software adapter. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { computeDevice } from '../../engine/run/devices.ts';
import { stageNamed } from '../../engine/plan/physical-plan.ts';
import {
  ALS,
  type AlsOptions,
  CancelledError,
  DeviceLostError,
  LostTrainingError,
  type Model,
  type ProgressEvent,
  Session,
} from '../../index.ts';
import type { GpuDevice } from '../../gpu/device.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { plantedRatings } from '../support/planted.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(71, 90, 60, 2500);
const held = randomRatings(72, 90, 60, 200);

const fit = (
  session: Session,
  options: AlsOptions,
  onEvent?: (event: ProgressEvent) => void,
  signal?: AbortSignal,
) =>
  new ALS({ maxIter: 3, seed: 5, ...options }).fit(session.from(ratingBatches(rows)), {
    validation: session.from(ratingBatches(held)),
    onEvent,
    signal,
  });

const factorsOf = (model: Model) =>
  [model.userFactors, model.itemFactors].map(
    (batch) => batch.data.children[1].children[0].values as Float32Array,
  );

/** Largest difference of two models' factors. */
function distance(left: Model, right: Model): number {
  const [a, b] = [factorsOf(left), factorsOf(right)];
  return Math.max(
    ...a.map((values, side) =>
      values.reduce((most, value, i) => Math.max(most, Math.abs(value - b[side][i])), 0),
    ),
  );
}

describe.skipIf(noGpu)('training on a GPU', () => {
  let cpu: Session;
  let gpu: Session;
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
    gpu = await Session.create({ device: 'gpu', workers: 1 });
  });
  afterAll(async () => {
    await cpu?.close();
    await gpu?.close();
  });
  afterEach(() => vi.restoreAllMocks());

  it.each<AlsOptions>([
    { rank: 10, solver: 'cholesky', biases: true },
    { rank: 20, solver: 'cg', cgSteps: 3 },
    { rank: 10, nonnegative: true, biases: true },
  ])('gives the model of a CPU, within float32: %j', async (options) => {
    const [expected, got] = [await fit(cpu, options), await fit(gpu, options)];
    expect(distance(got, expected)).toBeLessThan(2e-3);
    const [last, lastExpected] = [got, expected].map((model) => model.training!.iterations.at(-1)!);
    expect(last.loss / lastExpected.loss).toBeCloseTo(1, 4);
    expect(last.testRmse).toBeCloseTo(lastExpected.testRmse!, 3);
    const { plan } = got.training!;
    const { 'update-users': update, 'place-ratings': placed } = plan.measured!;
    expect(stageNamed(plan, 'update-users').at).toEqual(['gpu:0']);
    expect(update).toMatchObject({ runs: 3, rows: 3 * got.userCount });
    // With biases, their zeros are uploaded.
    expect(update.bytesUp).toBeLessThan(100 * got.userCount);
    // Uploaded once each: R by row; R by column without its values; the validation set; with biases, where
    // the solve computes the loss, the totals of items; and the two lists of rows, of 16 bytes a row.
    const blocks = plan.datasets.filter(({ layout }) => layout === 'rating-block');
    expect(blocks.map(({ name }) => name)).toEqual(['ratings-by-user', 'ratings-by-item', 'test-ratings']);
    const totals = plan.datasets.filter(({ layout }) => layout === 'row-totals');
    expect(totals).toHaveLength(options.biases === false || options.nonnegative ? 0 : 1);
    expect(placed.bytesUp).toBe(
      [...blocks, ...totals].reduce(
        (sum, { parts }) => sum + (parts[0].bytes ?? 0),
        2 * 16 * (got.userCount + got.itemCount) - 4 * plan.sizes.ratings,
      ),
    );
    expect(got.metadata.plan).toMatchObject({
      choices: { users: { variant: expect.any(String), precision: 'f32' } },
    });
  });

  it('takes the kernel requested by name, and lists those that exist', async () => {
    const model = await fit(gpu, { rank: 4, maxIter: 1, kernel: 'tiled4-f32' });
    expect(stageNamed(model.training!.plan, 'update-items')).toMatchObject({
      kernel: expect.stringMatching(/^update tiled4-f32 /),
      reasons: expect.arrayContaining([expect.stringMatching(/as requested/)]),
    });
    await expect(fit(gpu, { rank: 4, kernel: 'no-such' })).rejects.toThrow(
      /there is no kernel no-such for rank 4.*There are: .*tiled4-f32/,
    );
    const unread = gpu.from(
      (async function* (): AsyncGenerator<never> {
        yield* [];
        throw new Error('these ratings must not be read');
      })(),
    );
    await expect(new ALS({ rank: 4, kernel: 'no-such' }).fit(unread)).rejects.toThrow(
      /there is no kernel no-such/,
    );
    const half = await fit(gpu, { rank: 4, maxIter: 1, precision: 'f16' });
    expect(half.training?.plan.choices.items).toMatchObject({ precision: 'f16' });
    expect(distance(half, model)).toBeLessThan(0.05);
  });

  it('in float16 ends at the test RMSE of float32, with ratings from 1 to 100', async () => {
    const most = 100;
    const whole = plantedRatings(73, 200, 125, 15_000).map(({ user, item, rating }) => ({
      user,
      item,
      rating: Math.min(most, Math.max(1, Math.round((rating / 6) * most))),
    }));
    const held = (number: number) => number % 3 === 0;
    const [train, test] = [whole.filter((_, i) => !held(i)), whole.filter((_, i) => held(i))].map((part) =>
      gpu.from(ratingBatches(part)),
    );
    const rmse = async (precision: 'f32' | 'f16') =>
      (
        await new ALS({ rank: 8, maxIter: 6, seed: 5, solver: 'cg', precision }).fit(train, {
          validation: test,
        })
      ).training!.iterations.at(-1)!.testRmse!;
    expect(Math.abs((await rmse('f16')) - (await rmse('f32')))).toBeLessThan(0.002);
  });

  it('is cancelled between iterations, and the session goes on', async () => {
    const controller = new AbortController();
    const cancelled = fit(
      gpu,
      { rank: 4, maxIter: 1000 },
      (event) => void (event.type === 'iteration' && event.iteration === 2 && controller.abort()),
      controller.signal,
    );
    await expect(cancelled).rejects.toBeInstanceOf(CancelledError);
    expect((await fit(gpu, { rank: 4, maxIter: 1 })).training?.iterations).toHaveLength(1);
  });

  it('that is lost keeps the last model that was copied, and the session names the failure', async () => {
    await using session = await Session.create({ device: 'gpu', workers: 1 });
    const device = computeDevice(session.context().executor) as GpuDevice;
    const run = device.run.bind(device);
    let updates = 0;
    device.run = async (task, signal) => {
      // Not awaited, so that calls keep their order.
      if (task.kernel === 'update' && ++updates === 4) void device.lose();
      return run(task, signal);
    };
    let clock = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (clock += 60_000));
    const error = await fit(session, { rank: 4 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LostTrainingError);
    expect(String(error)).toMatch(
      /the GPU swiftshader\S* was lost during .*; the model of iteration 1 is kept/,
    );
    const { model } = error as LostTrainingError;
    expect(distance(model, await fit(cpu, { rank: 4, maxIter: 1, solver: 'cholesky' }))).toBeLessThan(2e-3);
    await expect(fit(session, { rank: 4 })).rejects.toBeInstanceOf(DeviceLostError);
  });
});
