/** Epochs of SGD that a device which works in order is sent before the losses of those before are known. */
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../../engine/errors.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { Task } from '../../../engine/task.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { LearningRate } from '../../../operators/sgd/train.ts';
import { sampleSize } from '../../support/deep.ts';
import { testRandom } from '../../support/ratings.ts';
import { recordSgd } from '../../support/steps/recorded-runs.ts';
import type { RecordingOptions } from '../../support/steps/recording-device.ts';
import { gpuInfo, mostly } from '../../support/steps/small-problems.ts';
import { RandomTurns } from '../../support/steps/turns.ts';
import { versionOf, watched } from '../../support/steps/watched-rounds.ts';

const NEVER = 1000;
const base = { rank: 2, maxIter: 5 } as const;

interface AskedSgd {
  readonly params?: Partial<SgdParams>;
  readonly copySeconds?: number;
  readonly gpu?: ReturnType<typeof gpuInfo>;
  /**
   * Epochs whose loss rises until the rate has been halved once for each time that the epoch is listed.
   */
  readonly diverging?: readonly number[];
  readonly users?: number;
  readonly items?: number;
  /** Versions of the rows for which the device has memory. */
  readonly room?: number;
}

/** A run on a device that answers later than it is asked, and what its events found. */
async function sgdOf({
  params = {},
  copySeconds = NEVER,
  gpu = gpuInfo(0),
  diverging = [],
  users = 8,
  items = 6,
  room = NEVER,
}: AskedSgd = {}) {
  const rated = mostly(users, items);
  const count = rated.flat().length;
  const rate = new LearningRate(checkSgdParams({ ...base, ...params }));
  const stepped = new Map<number, number>();
  const values = (task: Task): JsonObject => {
    if (task.kernel === 'sgd-tiles') stepped.set(versionOf(task.outputs, 'rows'), Number(task.params.rate));
    if (task.kernel === 'weighted-norm') return { sum: count, plain: 1 };
    if (
      task.kernel !== 'squared-error' ||
      Object.values(task.inputs).some(({ name }) => name.includes('tests'))
    )
      return {};
    const epoch = versionOf(task.inputs, 'rows');
    const halvings = diverging.filter((one) => one <= epoch).length;
    return {
      squared: halvings > 0 && (stepped.get(epoch) ?? 0) > 1.01 * rate.of(epoch) * 0.5 ** halvings ? 1e9 : 1,
    };
  };
  const turns = new RandomTurns(3);
  // As a GPU does whose memory is not known.
  const before: RecordingOptions['before'] = (_, verb, task) => {
    const there = recording.log.reduce(
      (sum, { at, verb: done, text }) =>
        sum +
        (at !== gpu.place || !text.startsWith('rows.')
          ? 0
          : done === 'release'
            ? -1
            : done === 'put' || done === 'allocate'
              ? 1
              : 0),
      0,
    );
    if (verb === 'run' && task?.kernel === 'sgd-tiles' && there > room)
      throw new CapacityError('the GPU does not have so much free');
  };
  const made = await recordSgd(
    {
      rows: rated,
      columns: items,
      test: true,
      compute: [gpu],
      options: (place) => ({ turns, values, ...(place === gpu.place ? { before } : {}) }),
    },
    { ...base, schedule: 'tile', ...params },
    { held: true, copySeconds },
  );
  const { recording, plan } = made;
  const seen = watched(recording, gpu.place, { sent: /^sgd-tiles/, held: /rows/ });
  const outcome = await made.train().then(
    ({ iterations }) => ({
      iterations: iterations.map(({ iteration, rate, loss }) => ({ iteration, rate, loss })),
    }),
    (error: Error) => ({ error }),
  );
  expect([recording.running, recording.held]).toEqual([0, []]);
  return {
    plan,
    ...seen,
    outcome,
    peak: recording.devices.find(({ info }) => info.place === gpu.place)?.peak,
  };
}

describe('epochs on speculation', () => {
  it('are on the device when the errors of the epoch before come', async () => {
    const [early, usual] = [await sgdOf(), await sgdOf({ copySeconds: 0 })];
    expect(early.sent).toEqual([2, 3, 4, 5, 5]);
    expect(usual.sent).toEqual([1, 2, 3, 4, 5]);
    expect(early.outcome).toEqual(usual.outcome);
    expect(early.plan.keep).toEqual({ start: true, best: false, speculates: true });
    expect(early.peak).toBeLessThanOrEqual(early.plan.memory['gpu:0']);
  });

  it.each([[[2]], [[3, 3]], [[5]], [[1, 4]], [[2, 2, 2, 2]], [[5, 5, 5, 5]]])(
    'are discarded after epochs that are run again, and leave nothing: %j',
    async (diverging) => {
      const [early, usual] = [await sgdOf({ diverging }), await sgdOf({ diverging, copySeconds: 0 })];
      expect(early.warnings).toEqual(usual.warnings);
      expect(early.warnings).toHaveLength(Math.min(3, diverging.length));
      // Only the factors of the last good epoch are on the device when an epoch is announced to run again.
      const good = diverging.slice(0, 3).map((epoch) => [expect.stringMatching(`/rows/0@${epoch - 1}$`)]);
      expect(early.held).toEqual(good);
      expect(early.outcome).toEqual(usual.outcome);
      expect('error' in early.outcome).toBe(diverging.length > 3);
      expect(early.peak).toBeLessThanOrEqual(early.plan.memory['gpu:0']);
    },
  );

  it.each([[[]], [[2]], [[5]]])(
    'wait for each other once one finds no room on a device whose memory is not known: %j',
    async (diverging) => {
      const [early, usual] = [
        await sgdOf({ room: 2, diverging }),
        await sgdOf({ diverging, copySeconds: 0 }),
      ];
      expect(early.plan.keep.speculates).toBe(true);
      expect(early.outcome).toEqual(usual.outcome);
      expect(early.warnings).toEqual(usual.warnings);
      expect(early.notes).toEqual([
        'epoch 2 did not fit on the device together with the two before it; from here on each epoch waits for the errors of the one before',
      ]);
      // Not even two.
      expect(await sgdOf({ room: 1 })).toMatchObject({ outcome: { error: expect.any(CapacityError) } });
    },
  );

  it.each(Array.from({ length: sampleSize(12) }, (_, seed) => seed))(
    'give the course of epochs that wait, in the memory that the plan counts: random problem %i',
    async (seed) => {
      const random = testRandom(7919 * (seed + 1));
      const below = (bound: number) => Math.floor(bound * random());
      for (let turn = 0; turn < 8; turn++) random();
      const maxIter = 2 + below(6);
      const adaptive = below(3) === 0;
      const asked = {
        users: 6 + below(30),
        items: 3 + below(4),
        diverging: Array.from({ length: below(5) }, () => 1 + below(maxIter)),
        params: {
          rank: 1 + below(9),
          maxIter,
          biases: !adaptive && below(2) === 0,
          rate: adaptive ? 'adagrad' : (['paper', 'constant'] as const)[below(2)],
          ...(below(2) === 0 ? { regOffset: 1 } : {}),
        },
      } as const;
      const [free, usual] = [await sgdOf(asked), await sgdOf({ ...asked, copySeconds: 0 })];
      const tight = await sgdOf({
        ...asked,
        gpu: { ...gpuInfo(0), capacityBytes: free.plan.memory['gpu:0'] },
      });
      for (const early of [free, tight]) {
        expect(early.plan.keep.speculates).toBe(true);
        expect(early.outcome).toEqual(usual.outcome);
        expect(early.warnings).toEqual(usual.warnings);
        expect(early.peak).toBeLessThanOrEqual(early.plan.memory['gpu:0']);
      }
    },
  );

  it('are not sent where the device has no room for three versions, or where rates follow from losses', async () => {
    const { plan } = await sgdOf();
    const tight = await sgdOf({ gpu: { ...gpuInfo(0), capacityBytes: plan.memory['gpu:0'] - 1 } });
    expect(tight.plan.memory['gpu:0']).toBeLessThan(plan.memory['gpu:0']);
    for (const { plan: other, sent } of [
      tight,
      await sgdOf({ params: { rate: 'bold' } }),
      await sgdOf({ params: { earlyStop: 5 } }),
    ]) {
      expect(other.keep.speculates).toBeUndefined();
      expect(sent).toEqual([1, 2, 3, 4, 5]);
    }
  });
});
