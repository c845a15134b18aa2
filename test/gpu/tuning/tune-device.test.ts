import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedArray, type Partition } from '../../../engine/partition.ts';
import type { GpuDevice } from '../../../gpu/device.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import { chooseUpdate, type TunedVariant } from '../../../gpu/update/choice/choose.ts';
import { randomBlock } from '../../../operators/tasks/sample-inputs.ts';
import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { valuesOfTask } from '../../support/devices/values-of-task.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';

const lengths = Array.from({ length: 40 }, (_, row) => (row * 7) % 30);
const columns = 50;

function ratings(): Partition {
  const { columns: given, ...block } = randomBlock(lengths, columns, 3);
  const shared = {
    offsets: sharedArray(Int32Array, given.offsets.length),
    indices: sharedArray(Uint32Array, given.indices.length),
    values: sharedArray(Float32Array, given.values.length),
  };
  shared.offsets.set(given.offsets as Int32Array);
  shared.indices.set(given.indices as Uint32Array);
  shared.values.set(given.values as Float32Array);
  return { ...block, columns: shared };
}

describe.skipIf(noGpu)('a GPU device that tunes', () => {
  const kept = new Map<string, TunedVariant>();
  const tunedKernels = {
    find: async (key: string) => kept.get(key),
    keep: async (key: string, tuned: TunedVariant) => void kept.set(key, tuned),
  };
  const ref = { name: 'ratings', partition: 0, version: 0 };
  const block = ratings();
  const count = block.columns.indices.length;
  let device: GpuDevice;
  beforeAll(async () => {
    device = await openGpuDevice({ tunedKernels });
    device.put(ref, block);
  });
  afterAll(() => device?.close());

  const problem = {
    rank: 10,
    solver: 'cg',
    cgSteps: 2,
    precision: 'f32',
    biases: true,
    rows: lengths.length,
    columns,
    ratings: count,
    iterations: 10,
    longest: 29,
    largestRating: 5,
  } as const;

  const chosen = (params: UpdateProblem) =>
    valuesOfTask(device, { kernel: 'choose-update', inputs: {}, outputs: {}, params });
  const tuned = async (params: UpdateProblem, how: 'where-it-pays' | 'thorough', signal?: AbortSignal) =>
    (
      await valuesOfTask(
        device,
        { kernel: 'tune-update', inputs: { block: ref }, outputs: {}, params: { ...params, how } },
        signal,
      )
    ).tuning;

  it('does not do so in front of a run, since this one computes on the processor', async () => {
    expect(await tuned(problem, 'where-it-pays')).toBeNull();
    expect((await chosen(problem)).reason).toContain('by rule');
  });

  it('times every variant next to the fastest, and chooses the fastest from then on', async () => {
    const tuning = await tuned(problem, 'thorough');
    expect(tuning).toMatchObject({ rows: 40, ratings: count, clock: 'gpu' });
    expect(tuning!.times.length).toBeGreaterThan(1);
    for (const { variant, milliseconds, problem: failure } of tuning!.times) {
      expect(failure, variant).toBeUndefined();
      expect(milliseconds, variant).toBeGreaterThan(0);
    }
    const best = tuning!.times.reduce((a, b) => (b.milliseconds! < a.milliseconds! ? b : a));
    expect(tuning!.variant).toBe(best.variant);
    expect(await chosen(problem)).toMatchObject({
      variant: best.variant,
      reason: expect.stringMatching(
        /measured fastest of \d+: [\d.]+ ms against [\d.]+ ms of tiled\S+, sample of \d+ ratings/,
      ),
    });
    expect([...kept.values()]).toEqual([{ variant: tuning!.variant, reason: tuning!.reason }]);
    // A kernel requested by name is always used.
    expect(await chosen({ ...problem, kernel: 'tiled4-f32' })).toMatchObject({
      variant: 'tiled4-f32',
      reason: expect.stringContaining('as requested'),
    });
    expect(chooseUpdate(device.adapter, problem).variant).toMatch(/^tiled/);
  });

  it.each([{}, { biases: false, implicit: true }])(
    'times variants that draw rows to priors: %j',
    async (of) => {
      const tuning = await tuned({ ...problem, ...of, prior: true }, 'thorough');
      expect(tuning!.times.length).toBeGreaterThan(1);
      for (const { variant, problem: failure } of tuning!.times) expect(failure, variant).toBeUndefined();
    },
  );

  it('times a sample of a larger block', async () => {
    const params = {
      rank: 6,
      solver: 'cholesky',
      cgSteps: 2,
      biases: false,
      columns,
      ratingScale: 1,
      variants: ['tiled8-f32', 'tiled4-f32'],
      sample: 100,
      seconds: 60,
    };
    const { values } = await device.run({
      kernel: 'time-variants',
      inputs: { block: ref },
      outputs: {},
      params,
    });
    expect(values.ratings).toBeGreaterThan(50);
    expect(values.ratings).toBeLessThan(200);
    expect((values.times as { variant: string }[]).map(({ variant }) => variant)).toEqual(params.variants);
    const short = await device.run({
      kernel: 'time-variants',
      inputs: { block: ref },
      outputs: {},
      params: { ...params, seconds: 0 },
    });
    expect(short.values.times).toHaveLength(1);
  });

  it('keeps ratings that were sent before: only other ratings are sent', async () => {
    const upload = async () =>
      (await device.run({ kernel: 'upload', inputs: { data: ref }, outputs: {}, params: {} })).metrics
        .bytesUp;
    device.put(ref, { ...block });
    expect(await upload()).toBe(0);
    device.put(ref, ratings());
    expect(await upload()).toBeGreaterThan(8 * count);
  });

  it('is cancelled between variants', async () => {
    const controller = new AbortController();
    const tuning = tuned({ ...problem, rank: 9 }, 'thorough', controller.signal);
    controller.abort();
    await expect(tuning).rejects.toThrow(/cancelled/);
  });
});
