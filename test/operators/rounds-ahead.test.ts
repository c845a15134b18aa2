/** Rounds that a device which works in order is sent before the errors of those before are known. */
import { describe, expect, it } from 'vitest';
import { CapacityError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Task } from '../../engine/task.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import { LearningRate } from '../../operators/sgd/learning-rate.ts';
import { checkSgdParams, type SgdParams } from '../../operators/sgd/params.ts';
import { recordAls, recordSgd, type Recording } from '../support/steps/recorded-runs.ts';
import type { RecordingOptions } from '../support/steps/recording-device.ts';
import { cpuInfo, gpuInfo, mostly } from '../support/steps/small-problems.ts';
import { RandomTurns } from '../support/steps/turns.ts';
import { testRandom } from '../support/ratings.ts';

const NEVER = 1000;
const rows = mostly(8, 6);
const ratings = rows.reduce((sum, row) => sum + row.length, 0);
const base = { rank: 2, maxIter: 5 } as const;

/** The version that a task reads or writes of a side. */
function versionOf(refs: Task['inputs'], side: string): number {
  return Object.values(refs).find(({ name }) => name.endsWith(`/${side}`))?.version ?? 0;
}

/**
 * The number of tasks of that text that had been sent when each round was reported, the warnings, and notes
 * of rounds ahead.
 */
function watched(
  { events, log }: Recording,
  place: string,
  text: RegExp,
): { readonly sent: number[]; readonly told: string[]; readonly notes: string[] } {
  const seen = { sent: [] as number[], told: [] as string[], notes: [] as string[] };
  const push = events.push.bind(events);
  events.push = (...more) => {
    for (const event of more) {
      if (event.type === 'iteration')
        seen.sent.push(
          log.filter((one) => one.at === place && one.verb === 'run' && text.test(one.text)).length,
        );
      if (event.type === 'warning') seen.told.push(event.text);
      if (event.type === 'note' && /room on the device/.test(event.text)) seen.notes.push(event.text);
    }
    return push(...more);
  };
  return seen;
}

interface Asked {
  readonly params?: Partial<AlsParams>;
  /** 0: the factors are copied behind each round, so none is sent ahead. */
  readonly copySeconds?: number;
  readonly gpu?: ReturnType<typeof gpuInfo>;
  readonly values?: (task: Task) => JsonObject;
}

/**
 * A run on a device that answers later than it is asked, and what had been sent when each iteration was
 * reported.
 */
async function runOf({
  params = {},
  copySeconds = NEVER,
  gpu = gpuInfo(0),
  values = () => ({}),
}: Asked = {}) {
  const turns = new RandomTurns(3);
  const sums = (task: Task): JsonObject => ({
    ...(task.kernel === 'weighted-norm' ? { sum: ratings, plain: 1 } : {}),
    ...values(task),
  });
  const made = await recordAls(
    { rows, columns: 6, test: true, compute: [gpu], options: () => ({ turns, values: sums }) },
    { ...base, ...params },
    { held: true, copySeconds },
  );
  const { recording, plan } = made;
  const { sent } = watched(recording, gpu.place, /^update.* > users\.0@/);
  const outcome = await made.train().then(
    ({ iterations, bestIteration }) => ({ result: { iterations, bestIteration } }),
    (error: Error) => ({ error }),
  );
  expect([recording.running, recording.held]).toEqual([0, []]);
  return {
    recording,
    plan,
    sent,
    outcome,
    peak: recording.devices.find(({ info }) => info.place === gpu.place)?.peak,
  };
}

describe('rounds ahead', () => {
  it('are on the device when the errors of the round before come, and give the reports of rounds that are not', async () => {
    const [ahead, usual] = [await runOf(), await runOf({ copySeconds: 0 })];
    expect(ahead.sent).toEqual([2, 3, 4, 5, 5]);
    expect(usual.sent).toEqual([1, 2, 3, 4, 5]);
    expect(ahead.outcome).toEqual(usual.outcome);
    const runs = ({ recording }: typeof ahead) =>
      recording.log.filter(({ at, verb }) => at === 'gpu:0' && verb === 'run').map(({ text }) => text);
    expect(runs(ahead)).toEqual(runs(usual));
  });

  it('take the memory that the plan counts', async () => {
    const { plan, peak } = await runOf();
    expect(plan.keep.ahead).toBe(true);
    expect(peak).toBeLessThanOrEqual(plan.memory['gpu:0']);
  });

  it('are not sent where the device has no room for two versions', async () => {
    const { plan } = await runOf();
    const bytes = plan.memory['gpu:0'] - 1;
    const tight = await runOf({ gpu: { ...gpuInfo(0), capacityBytes: bytes } });
    expect(tight.plan.keep.ahead).toBeUndefined();
    expect(tight.plan.memory['gpu:0']).toBeLessThanOrEqual(bytes);
    expect(tight.sent).toEqual([1, 2, 3, 4, 5]);
  });

  it.each<[string, Partial<AlsParams>]>([
    ['early stop', { earlyStop: 5 }],
    ['a target', { targetRmse: 0.001 }],
    ['matrices that are derived from the factors', { implicitPrefs: true }],
  ])('are not sent with %s', async (_, params) => {
    expect((await runOf({ params })).sent).toEqual([1, 2, 3, 4, 5]);
  });

  it('are not sent to a device that takes steps in other orders', async () => {
    const made = await recordAls({ rows, columns: 6, compute: [cpuInfo] }, base, { copySeconds: NEVER });
    expect(made.plan.keep.ahead).toBeUndefined();
  });

  it.each([
    [
      'a row without a finite solution',
      (task: Task): JsonObject =>
        task.kernel === 'update' && versionOf(task.outputs, 'users') === 2 ? { badRow: 3 } : {},
    ],
    [
      'a loss that is not finite',
      (task: Task): JsonObject =>
        versionOf(task.inputs, 'users') === 2 && task.kernel !== 'update' ? { squared: NaN, sum: NaN } : {},
    ],
  ])('are dropped behind %s, whose error is thrown', async (_, values) => {
    const [ahead, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(ahead.outcome).toHaveProperty('error');
    expect(ahead.outcome).toEqual(usual.outcome);
    expect(ahead.sent).toEqual([2]);
  });

  it('leave the factors before them for an exact pass, where the solve does not tell the errors', async () => {
    // Of the third iteration all squares cancel.
    const values = (task: Task): JsonObject =>
      task.kernel === 'update' ? { objective: versionOf(task.outputs, 'users') === 3 ? -1e9 : 0 } : {};
    const [ahead, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(ahead.outcome).toEqual(usual.outcome);
    if ('error' in ahead.outcome) throw ahead.outcome.error;
    expect(ahead.outcome.result.iterations.map(({ fromSolve = false }) => fromSolve)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    expect(ahead.sent).toEqual([2, 3, 4, 5, 5]);
  });

  it('let the factors of the last iteration come to the host before its exact pass ends', async () => {
    const { recording } = await runOf();
    const log = recording.log.filter(({ at }) => at === 'gpu:0').map(({ verb, text }) => `${verb} ${text}`);
    expect(log.findIndex((line) => line.startsWith('fetch'))).toBeLessThan(
      log.findLastIndex((line) => line.startsWith('run squared-error')),
    );
  });
});

interface AskedSgd {
  readonly params?: Partial<SgdParams>;
  readonly copySeconds?: number;
  readonly gpu?: ReturnType<typeof gpuInfo>;
  /**
   * Epochs whose loss rises until their rate, and that of later ones, has been halved, each as often as it
   * stands here.
   */
  readonly diverging?: readonly number[];
  readonly users?: number;
  readonly items?: number;
  /** Versions of the rows for which the device has memory. */
  readonly room?: number;
}

/** The same by SGD. */
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
  const { sent, told, notes } = watched(recording, gpu.place, /^sgd-tiles/);
  const outcome = await made.train().then(
    ({ iterations }) => ({
      iterations: iterations.map(({ iteration, rate, loss }) => ({ iteration, rate, loss })),
    }),
    (error: Error) => ({ error }),
  );
  expect([recording.running, recording.held]).toEqual([0, []]);
  return {
    plan,
    sent,
    told,
    notes,
    outcome,
    peak: recording.devices.find(({ info }) => info.place === gpu.place)?.peak,
  };
}

describe('epochs of SGD ahead', () => {
  it('are on the device when the errors of the epoch before come', async () => {
    const [ahead, usual] = [await sgdOf(), await sgdOf({ copySeconds: 0 })];
    expect(ahead.sent).toEqual([2, 3, 4, 5, 5]);
    expect(usual.sent).toEqual([1, 2, 3, 4, 5]);
    expect(ahead.outcome).toEqual(usual.outcome);
    expect(ahead.plan.keep).toEqual({ start: true, best: false, ahead: true });
    expect(ahead.peak).toBeLessThanOrEqual(ahead.plan.memory['gpu:0']);
  });

  it.each([[[2]], [[3, 3]], [[5]], [[1, 4]], [[2, 2, 2, 2]], [[5, 5, 5, 5]]])(
    'are thrown away behind epochs that are run again: %j',
    async (diverging) => {
      const [ahead, usual] = [await sgdOf({ diverging }), await sgdOf({ diverging, copySeconds: 0 })];
      expect(ahead.told).toEqual(usual.told);
      expect(ahead.told).toHaveLength(Math.min(3, diverging.length));
      expect(ahead.outcome).toEqual(usual.outcome);
      expect('error' in ahead.outcome).toBe(diverging.length > 3);
      expect(ahead.peak).toBeLessThanOrEqual(ahead.plan.memory['gpu:0']);
    },
  );

  it.each([[[]], [[2]], [[5]]])(
    'wait for each other once one finds no room on a device whose memory is not known: %j',
    async (diverging) => {
      const [ahead, usual] = [
        await sgdOf({ room: 2, diverging }),
        await sgdOf({ diverging, copySeconds: 0 }),
      ];
      expect(ahead.plan.keep.ahead).toBe(true);
      expect(ahead.outcome).toEqual(usual.outcome);
      expect(ahead.told).toEqual(usual.told);
      expect(ahead.notes).toEqual([
        'epoch 2 found no room on the device beside the two before it; from here on each epoch waits for the errors of the one before',
      ]);
      // Not even two.
      expect(await sgdOf({ room: 1 })).toMatchObject({ outcome: { error: expect.any(CapacityError) } });
    },
  );

  it.each(Array.from({ length: 12 }, (_, seed) => seed))(
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
      for (const ahead of [free, tight]) {
        expect(ahead.plan.keep.ahead).toBe(true);
        expect(ahead.outcome).toEqual(usual.outcome);
        expect(ahead.told).toEqual(usual.told);
        expect(ahead.peak).toBeLessThanOrEqual(ahead.plan.memory['gpu:0']);
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
      expect(other.keep.ahead).toBeUndefined();
      expect(sent).toEqual([1, 2, 3, 4, 5]);
    }
  });
});
