/**
 * Iterations of ALS that a device which works in order is sent before the errors of those before are known.
 */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../engine/json.ts';
import type { Task } from '../../../engine/task.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import { recordAls } from '../../support/steps/recorded-runs.ts';
import { cpuInfo, gpuInfo, mostly } from '../../support/steps/small-problems.ts';
import { RandomTurns } from '../../support/steps/turns.ts';
import { versionOf, watched } from '../../support/steps/watched-rounds.ts';

const NEVER = 1000;
const rows = mostly(8, 6);
const ratings = rows.reduce((sum, row) => sum + row.length, 0);
const base = { rank: 2, maxIter: 5 } as const;

interface Asked {
  readonly params?: Partial<AlsParams>;
  /** 0: the factors are copied after each round, so no round is sent early. */
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
  const { sent } = watched(recording, gpu.place, { sent: /^update.* > users\.0@/, held: /users/ });
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

describe('iterations on speculation', () => {
  it('are on the device when the errors of the round before come, and give the reports of rounds that are not', async () => {
    const [early, usual] = [await runOf(), await runOf({ copySeconds: 0 })];
    expect(early.sent).toEqual([2, 3, 4, 5, 5]);
    expect(usual.sent).toEqual([1, 2, 3, 4, 5]);
    expect(early.outcome).toEqual(usual.outcome);
    const runs = ({ recording }: typeof early) =>
      recording.log.filter(({ at, verb }) => at === 'gpu:0' && verb === 'run').map(({ text }) => text);
    expect(runs(early)).toEqual(runs(usual));
  });

  it('take the memory that the plan counts', async () => {
    const { plan, peak } = await runOf();
    expect(plan.keep.speculates).toBe(true);
    expect(peak).toBeLessThanOrEqual(plan.memory['gpu:0']);
  });

  it('are not sent where the device has no room for two versions', async () => {
    const { plan } = await runOf();
    const bytes = plan.memory['gpu:0'] - 1;
    const tight = await runOf({ gpu: { ...gpuInfo(0), capacityBytes: bytes } });
    expect(tight.plan.keep.speculates).toBeUndefined();
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
    expect(made.plan.keep.speculates).toBeUndefined();
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
  ])('are dropped after %s, whose error is thrown', async (_, values) => {
    const [early, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(early.outcome).toHaveProperty('error');
    expect(early.outcome).toEqual(usual.outcome);
    expect(early.sent).toEqual([2]);
  });

  it('leave the factors before them for an exact pass, where the solve has no errors', async () => {
    // Of the third iteration all squares cancel.
    const values = (task: Task): JsonObject =>
      task.kernel === 'update' ? { objective: versionOf(task.outputs, 'users') === 3 ? -1e9 : 0 } : {};
    const [early, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(early.outcome).toEqual(usual.outcome);
    if ('error' in early.outcome) throw early.outcome.error;
    expect(early.outcome.result.iterations.map(({ fromSolve = false }) => fromSolve)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    expect(early.sent).toEqual([2, 3, 4, 5, 5]);
  });

  it('let the factors of the last iteration come to the host before its exact pass ends', async () => {
    const { recording } = await runOf();
    const log = recording.log.filter(({ at }) => at === 'gpu:0').map(({ verb, text }) => `${verb} ${text}`);
    expect(log.findIndex((line) => line.startsWith('fetch'))).toBeLessThan(
      log.findLastIndex((line) => line.startsWith('run squared-error')),
    );
  });
});
