/** The loop of rounds on factors that are only numbers: the losses are given. */
import { describe, expect, it } from 'vitest';
import { RunMetrics } from '../../../engine/metrics.ts';
import { partitionKey, type PartitionRef } from '../../../engine/partition.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import { stagesOf } from '../../../engine/plan/physical-plan.ts';
import type { Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import type { Device } from '../../../engine/run/device.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import type { Task, TaskResult } from '../../../engine/task.ts';
import { DivergedError } from '../../../index.ts';
import { checkSgdParams } from '../../../operators/sgd/params.ts';
import { planSgd } from '../../../operators/sgd/plan.ts';
import { dominantItem } from '../../../operators/sgd/schedules/convergence.ts';
import { LearningRate } from '../../../operators/sgd/train.ts';
import { MOST_RESTARTS, runLoop } from '../../../operators/training/loop.ts';
import { type LoopResult, StoppingRule } from '../../../operators/training/training.ts';
import { cpuInfo } from '../../support/devices/device-info.ts';

/** Factors are one number: how many rounds had been run, failed ones too, when they were written. */
class NumberDevice implements Device {
  readonly info = cpuInfo;
  readonly rates: number[] = [];
  readonly lying = new Map<string, number>();
  readonly #losses: readonly number[];
  most = 0;

  constructor(losses: readonly number[]) {
    this.#losses = losses;
  }

  put(ref: PartitionRef): void {
    this.lying.set(partitionKey(ref), 0);
    this.most = Math.max(this.most, this.lying.size);
  }

  allocate(ref: PartitionRef): void {
    this.put(ref);
  }

  async run({ kernel, inputs, outputs, params }: Task): Promise<TaskResult> {
    const metrics = { rows: 1, bytesUp: 0, bytesDown: 0, milliseconds: 0 };
    if (kernel === 'copy-rows')
      this.lying.set(partitionKey(outputs.target), this.rates.push(params.rate as number));
    return {
      metrics,
      values:
        kernel === 'copy-rows'
          ? {}
          : { squared: this.#losses[(this.lying.get(partitionKey(inputs.rowFactors)) ?? 0) - 1] },
    };
  }

  async fetch(ref: PartitionRef) {
    return {
      layout: 'factors',
      rows: 1,
      columns: { values: Float32Array.of(this.lying.get(partitionKey(ref)) ?? Number.NaN) },
    };
  }

  release(ref: PartitionRef): void {
    this.lying.delete(partitionKey(ref));
  }

  async trim(): Promise<void> {}

  async close(): Promise<void> {}
}

const tasks = (name: string, task: TaskPlan): Stage => ({
  name,
  at: ['cpu'],
  work: { kind: 'tasks', tasks: [task] },
});
const bound: BoundPlan = {
  name: 'numbers',
  devices: [cpuInfo],
  datasets: [{ name: 'factors', layout: 'factors', columns: 1, parts: [{ rows: 1, at: ['cpu'] }] }],
  phases: {
    start: [{ name: 'allocate', at: ['cpu'], work: { kind: 'allocate', data: ['factors'] } }],
    round: [
      tasks('epoch', {
        kernel: 'copy-rows',
        uses: { source: { set: 'factors', version: 'old' }, target: 'factors' },
        takes: { rate: 'rate' },
      }),
    ],
    measure: [tasks('train-error', { kernel: 'squared-error', uses: { rowFactors: 'factors' } })],
    end: [
      {
        name: 'fetch-factors',
        at: ['cpu'],
        work: { kind: 'exchange', how: 'move', data: ['factors'], to: 'host' },
      },
    ],
  },
  given: {},
  slices: {},
};

interface Trained {
  readonly result: LoopResult<number>;
  readonly device: NumberDevice;
  readonly warnings: readonly string[];
}

/** Runs epochs whose losses are these, one after the other; the validation error is the loss. */
async function train(losses: readonly number[], maxIter: number, earlyStop?: number): Promise<Trained> {
  const device = new NumberDevice(losses);
  const warnings: string[] = [];
  const rate = new LearningRate(checkSgdParams({ rate: 'constant', learningRate: 1 }));
  const result = await runLoop<number>(
    {
      called: 'epoch',
      maxIter,
      devices: [cpuInfo],
      rule: new StoppingRule({ earlyStop }, { ratings: 1 }),
      prepare: async () => ({
        bound,
        keep: { start: true, best: earlyStop !== undefined },
        given: [],
        startLoss: losses[0],
        round: (epoch) => ({ rate: rate.of(epoch) }),
        check: () => undefined,
        errors: (measured) => {
          const loss = measured.of('train-error')[0].squared as number;
          return { loss, trainRmse: loss, testRmse: loss };
        },
        diverged: (loss, before) => !(loss <= 1.1 * before),
        divergence: (epoch, loss, before) =>
          new DivergedError(
            `epoch ${epoch}: ${loss} after ${before}, at last with the rate ${rate.of(epoch)}`,
          ),
        slower: (epoch) => {
          rate.halve();
          return rate.of(epoch);
        },
        factors: (results) => (results.handed[0].columns.values as Float32Array)[0],
      }),
    },
    {
      signal: new AbortController().signal,
      executor: new LocalExecutor([device]),
      events: (event) => void (event.type === 'warning' && warnings.push(event.text)),
      metrics: new RunMetrics(),
    },
  );
  return { result, device, warnings };
}

describe('restarts of SGD', () => {
  it('are announced by the plan where one item has a large part of the ratings', async () => {
    const warnings = (itemCounts: readonly number[]) => {
      const plan = planSgd(
        { users: 50, items: 3, ratings: 100 },
        checkSgdParams({}),
        { compute: [cpuInfo], host: cpuInfo },
        { itemCounts },
      );
      return stagesOf(plan)
        .flatMap(({ stage: { reasons = [] } }) => reasons)
        .filter((reason) => reason.startsWith('WARNING: one item'));
    };
    expect(warnings([50, 25, 25])).toEqual([
      expect.stringMatching(/^WARNING: one item has 50 % of the ratings: .*smaller learningRate, or ALS$/),
    ]);
    expect(dominantItem({ ratings: 100, itemCounts: [20, 20, 20, 20, 20] })).toBeUndefined();
    expect(dominantItem({ ratings: 100 })).toBeUndefined();
  });

  it('are three at most for each epoch, not for the run, and go on from the epoch before', async () => {
    const { result, device, warnings } = await train(
      [100, 200, 90, 200, 80, 200, 70, 200, 60, Number.NaN, 50],
      6,
    );
    expect(result.iterations.map(({ loss, rate }) => [loss, rate])).toEqual([
      [100, 1],
      [90, 0.5],
      [80, 0.25],
      [70, 0.125],
      [60, 0.0625],
      [50, 0.03125],
    ]);
    expect(device.rates).toEqual([1, 1, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.03125]);
    expect([result.factors, result.bestIteration]).toEqual([11, 6]);
    expect(warnings).toHaveLength(5);
    expect(warnings[0]).toBe(
      'epoch 2 diverged: the loss is 200, after 100; it is run again from the epoch before with half the learning rate, 0.5',
    );
    // Only the version that a round starts from and the version that it writes.
    expect([device.most, device.lying.size]).toEqual([2, 0]);
  });

  it('end the run where three of them do not help', async () => {
    expect(MOST_RESTARTS).toBe(3);
    const run = train([100, 90, 200, 200, 200, 200], 6);
    await expect(run).rejects.toThrow(DivergedError);
    await expect(run).rejects.toThrow('epoch 3: 200 after 90, at last with the rate 0.125');
  });

  it('keep the best epoch beside the last', async () => {
    const { result, device } = await train([100, 80, 85, 200, 86, 87, 70], 10, 3);
    expect(result.iterations.map(({ loss }) => loss)).toEqual([100, 80, 85, 86, 87]);
    expect([result.factors, result.bestIteration]).toEqual([2, 2]);
    expect(device.most).toBe(3);
  });
});
