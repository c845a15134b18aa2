/** Rounds that a device which works in order is sent before the errors of those before are known. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../engine/json.ts';
import type { Task } from '../../engine/task.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import { recordAls, recordSgd, type Recording } from '../support/steps/recorded-runs.ts';
import { cpuInfo, gpuInfo, mostly } from '../support/steps/small-problems.ts';
import { RandomTurns } from '../support/steps/turns.ts';

const NEVER = 1000;
const rows = mostly(8, 6);
const ratings = rows.reduce((sum, row) => sum + row.length, 0);
const base = { rank: 2, maxIter: 5 } as const;

/** The version that a task reads or writes of a side. */
function versionOf(refs: Task['inputs'], side: string): number {
  return Object.values(refs).find(({ name }) => name.endsWith(`/${side}`))?.version ?? 0;
}

/** How many rounds' tasks of that text had been sent when each round was reported, and the warnings. */
function watched({ events, log }: Recording, place: string, text: RegExp): { readonly sent: number[]; readonly told: string[] } {
  const seen = { sent: [] as number[], told: [] as string[] };
  const push = events.push.bind(events);
  events.push = (...more) => {
    for (const event of more) {
      if (event.type === 'iteration') seen.sent.push(log.filter((one) => one.at === place && one.verb === 'run' && text.test(one.text)).length);
      if (event.type === 'warning') seen.told.push(event.text);
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

/** A run on a device that answers later than it is asked, and what had been sent when each iteration was reported. */
async function runOf({ params = {}, copySeconds = NEVER, gpu = gpuInfo(0), values = () => ({}) }: Asked = {}) {
  const turns = new RandomTurns(3);
  const sums = (task: Task): JsonObject => ({ ...(task.kernel === 'weighted-norm' ? { sum: ratings, plain: 1 } : {}), ...values(task) });
  const made = await recordAls({ rows, columns: 6, test: true, compute: [gpu], options: () => ({ turns, values: sums }) }, { ...base, ...params }, { held: true, copySeconds });
  const { recording, plan } = made;
  const { sent } = watched(recording, gpu.place, /^update.* > users\.0@/);
  const outcome = await made.train().then(({ iterations, bestIteration }) => ({ result: { iterations, bestIteration } }), (error: Error) => ({ error }));
  expect([recording.running, recording.held]).toEqual([0, []]);
  return { recording, plan, sent, outcome, peak: recording.devices.find(({ info }) => info.place === gpu.place)?.peak };
}

describe('rounds ahead', () => {
  it('are on the device when the errors of the round before come, and give the reports of rounds that are not', async () => {
    const [ahead, usual] = [await runOf(), await runOf({ copySeconds: 0 })];
    expect(ahead.sent).toEqual([2, 3, 4, 5, 5]);
    expect(usual.sent).toEqual([1, 2, 3, 4, 5]);
    expect(ahead.outcome).toEqual(usual.outcome);
    const runs = ({ recording }: typeof ahead) => recording.log.filter(({ at, verb }) => at === 'gpu:0' && verb === 'run').map(({ text }) => text);
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
    ['a row without a finite solution', (task: Task): JsonObject => (task.kernel === 'update' && versionOf(task.outputs, 'users') === 2 ? { badRow: 3 } : {})],
    ['a loss that is not finite', (task: Task): JsonObject => (versionOf(task.inputs, 'users') === 2 && task.kernel !== 'update' ? { squared: NaN, sum: NaN } : {})],
  ])('are dropped behind %s, whose error is thrown', async (_, values) => {
    const [ahead, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(ahead.outcome).toHaveProperty('error');
    expect(ahead.outcome).toEqual(usual.outcome);
    expect(ahead.sent).toEqual([2]);
  });

  it('leave the factors before them for an exact pass, where the solve does not tell the errors', async () => {
    // Of the third iteration all squares cancel.
    const values = (task: Task): JsonObject => (task.kernel === 'update' ? { objective: versionOf(task.outputs, 'users') === 3 ? -1e9 : 0 } : {});
    const [ahead, usual] = [await runOf({ values }), await runOf({ values, copySeconds: 0 })];
    expect(ahead.outcome).toEqual(usual.outcome);
    if ('error' in ahead.outcome) throw ahead.outcome.error;
    expect(ahead.outcome.result.iterations.map(({ fromSolve = false }) => fromSolve)).toEqual([true, true, false, true, false]);
    expect(ahead.sent).toEqual([2, 3, 4, 5, 5]);
  });

  it('let the factors of the last iteration come to the host before its exact pass ends', async () => {
    const { recording } = await runOf();
    const log = recording.log.filter(({ at }) => at === 'gpu:0').map(({ verb, text }) => `${verb} ${text}`);
    expect(log.findIndex((line) => line.startsWith('fetch'))).toBeLessThan(log.findLastIndex((line) => line.startsWith('run squared-error')));
  });
});

interface AskedSgd {
  readonly params?: Partial<SgdParams>;
  readonly copySeconds?: number;
  readonly gpu?: ReturnType<typeof gpuInfo>;
  /** Epochs whose loss rises, each as often as it stands here. */
  readonly diverging?: readonly number[];
}

/** The same by SGD. */
async function sgdOf({ params = {}, copySeconds = NEVER, gpu = gpuInfo(0), diverging = [] }: AskedSgd = {}) {
  const left = [...diverging];
  const values = (task: Task): JsonObject => {
    if (task.kernel === 'weighted-norm') return { sum: ratings, plain: 1 };
    if (task.kernel !== 'squared-error' || Object.values(task.inputs).some(({ name }) => name.includes('tests'))) return {};
    const at = left.indexOf(versionOf(task.inputs, 'rows'));
    if (at >= 0) left.splice(at, 1);
    return { squared: at >= 0 ? 1e9 : 1 };
  };
  const turns = new RandomTurns(3);
  const made = await recordSgd({ rows, columns: 6, test: true, compute: [gpu], options: () => ({ turns, values }) }, { ...base, schedule: 'tile', ...params }, { held: true, copySeconds });
  const { recording, plan } = made;
  const { sent, told } = watched(recording, gpu.place, /^sgd-tiles/);
  const outcome = await made.train().then(({ iterations }) => ({ iterations: iterations.map(({ iteration, rate, loss }) => ({ iteration, rate, loss })) }), (error: Error) => ({ error }));
  expect([recording.running, recording.held]).toEqual([0, []]);
  return { plan, sent, told, outcome, peak: recording.devices.find(({ info }) => info.place === gpu.place)?.peak };
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

  it.each([[[2]], [[3, 3]], [[5]], [[1, 4]], [[2, 2, 2, 2]], [[5, 5, 5, 5]]])('are thrown away behind epochs that are run again: %j', async (diverging) => {
    const [ahead, usual] = [await sgdOf({ diverging }), await sgdOf({ diverging, copySeconds: 0 })];
    expect(ahead.told).toEqual(usual.told);
    expect(ahead.told).toHaveLength(Math.min(3, diverging.length));
    expect(ahead.outcome).toEqual(usual.outcome);
    expect('error' in ahead.outcome).toBe(diverging.length > 3);
    expect(ahead.peak).toBeLessThanOrEqual(ahead.plan.memory['gpu:0']);
  });

  it('are not sent where the device has no room for three versions, or where rates follow from losses', async () => {
    const { plan } = await sgdOf();
    const tight = await sgdOf({ gpu: { ...gpuInfo(0), capacityBytes: plan.memory['gpu:0'] - 1 } });
    expect(tight.plan.memory['gpu:0']).toBeLessThan(plan.memory['gpu:0']);
    for (const { plan: other, sent } of [tight, await sgdOf({ params: { rate: 'bold' } }), await sgdOf({ params: { earlyStop: 5 } })]) {
      expect(other.keep.ahead).toBeUndefined();
      expect(sent).toEqual([1, 2, 3, 4, 5]);
    }
  });
});
