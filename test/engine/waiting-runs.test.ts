/**
 * A run ends when all the work that it began has ended, also after a failure, and throws the first failure.
 */
import { describe, expect, it } from 'vitest';
import { LocalExecutor } from '../../engine/run/local-executor.ts';
import type { PartitionRef } from '../../engine/partition.ts';
import { runSteps } from '../../engine/run/run-steps.ts';
import { StepList } from '../../engine/run/step-list.ts';
import { contracts } from '../../operators/tasks/tasks.ts';
import { RecordingDevice, type RecordingOptions } from '../support/steps/recording-device.ts';
import { contextOf, cpuInfo } from '../support/steps/small-problems.ts';

const ref = (name: string): PartitionRef => ({ name, partition: 0, version: 0 });

/** Two tasks that depend on nothing, and a third that depends on the first. */
function steps() {
  const list = new StepList(contracts);
  for (const name of ['a', 'b'])
    list.task('draw', 'cpu', {
      kernel: 'batch-order',
      inputs: {},
      outputs: { order: ref(name) },
      params: { name, batches: 1 },
    });
  list.task('draw', 'cpu', { kernel: 'upload', inputs: { data: ref('a') }, outputs: {}, params: {} });
  return list.steps;
}

function recorded(before: RecordingOptions['before']) {
  const device = new RecordingDevice(cpuInfo, [], { before });
  return { device, ctx: contextOf(new LocalExecutor([device])) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a run of which a task fails', () => {
  it('waits for a task that hangs, and begins no other', async () => {
    const hang = Promise.withResolvers<void>();
    const { device, ctx } = recorded((_, __, task) => {
      if (task?.params.name === 'a') return Promise.reject(new Error('a fails'));
      return task?.params.name === 'b' ? hang.promise : undefined;
    });
    let ended = false;
    const run = runSteps(steps(), ctx).finally(() => (ended = true));
    const outcome = run.catch((error: Error) => error.message);
    for (let i = 0; i < 5; i++) await turn();
    expect([ended, device.running]).toEqual([false, 1]);
    hang.resolve();
    expect(await outcome).toBe('a fails');
    expect([device.running, device.log.length]).toEqual([0, 2]);
  });

  it('throws the first of two failures', async () => {
    const later = Promise.withResolvers<void>();
    const { ctx } = recorded((_, __, task) =>
      task?.params.name === 'a' ? later.promise : Promise.reject(new Error('b fails first')),
    );
    const run = runSteps(steps(), ctx).catch((error: Error) => error.message);
    for (let i = 0; i < 5; i++) await turn();
    later.reject(new Error('a fails later'));
    expect(await run).toBe('b fails first');
  });

  it('ends at once when cancelled before it begins', async () => {
    const { device, ctx } = recorded(() => {});
    await expect(runSteps(steps(), { ...ctx, signal: AbortSignal.abort() })).rejects.toThrow('cancelled');
    expect(device.log).toEqual([]);
  });
});
