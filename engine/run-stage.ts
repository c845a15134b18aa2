import { CancelledError } from './errors.ts';
import type { Device } from './executor.ts';
import type { ExecutionContext } from './operator.ts';
import type { Task, TaskResult } from './task.ts';

/**
 * Runs the tasks of one stage on a device and gives their results in task order, whatever order they end in.
 * The first failure cancels the tasks that are still under way; it is thrown once they have ended, so that no task
 * writes behind the caller's back. `onDone` hears the number of finished tasks.
 */
export async function runStage(
  ctx: ExecutionContext,
  stage: string,
  device: Device,
  tasks: readonly Task[],
  onDone?: (finished: number) => void,
): Promise<TaskResult[]> {
  const start = performance.now();
  const failure = new AbortController();
  const signal = AbortSignal.any([ctx.signal, failure.signal]);
  let finished = 0;
  let firstError: unknown;
  const run = async (task: Task): Promise<TaskResult | undefined> => {
    try {
      const result = await device.run(task, signal);
      ctx.metrics.add(stage, result.metrics);
      onDone?.(++finished);
      return result;
    } catch (error) {
      firstError ??= error;
      failure.abort();
      return undefined;
    }
  };
  const results = await Promise.all(tasks.map(run));
  ctx.metrics.addWall(stage, performance.now() - start);
  if (ctx.signal.aborted) throw new CancelledError({ phase: stage });
  if (firstError !== undefined) throw firstError;
  return results as TaskResult[];
}
