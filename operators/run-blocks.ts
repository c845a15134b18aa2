import { CancelledError } from '../engine/errors.ts';
import type { Device } from '../engine/executor.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import type { Task } from '../engine/task.ts';
import type { GridBlock } from '../engine/plan/grid-order.ts';

/** What is run for one block of the grid. */
export interface BlockTask extends GridBlock {
  readonly task: Task;
}

/**
 * Runs a grid's tasks at once as far as they share no row band and no column band: each waits for the one before it in its
 * row, and for the one before it in its column, and for nothing else (the column locks of cuMF_SGD, section 3.2.3, with
 * their order fixed beforehand). So the outcome is that of the tasks one by one in the given order, whatever ran at once.
 * The first failure cancels the others; it is thrown once they have ended. `onDone` hears the number of finished tasks.
 */
export async function runBlocks(ctx: ExecutionContext, stage: string, device: Device, blocks: readonly BlockTask[], onDone?: (finished: number) => void): Promise<void> {
  const start = performance.now();
  const failure = new AbortController();
  const signal = AbortSignal.any([ctx.signal, failure.signal]);
  const rowFree: Promise<void>[] = [];
  const columnFree: Promise<void>[] = [];
  let finished = 0;
  let firstError: unknown;
  const run = async ({ task, row, column }: BlockTask, before: readonly (Promise<void> | undefined)[]): Promise<void> => {
    await Promise.all(before);
    if (signal.aborted) return;
    try {
      const result = await device.run(task, signal);
      ctx.metrics.add(stage, result.metrics);
      onDone?.(++finished);
    } catch (error) {
      firstError ??= error instanceof Error ? error : new Error(`block (${row}, ${column}) failed: ${String(error)}`);
      failure.abort();
    }
  };
  const all = blocks.map((block) => {
    const { row, column } = block;
    const done = run(block, [rowFree[row], columnFree[column]]);
    rowFree[row] = done;
    columnFree[column] = done;
    return done;
  });
  await Promise.all(all);
  ctx.metrics.addWall(stage, performance.now() - start);
  if (ctx.signal.aborted) throw new CancelledError({ phase: stage });
  if (firstError !== undefined) throw firstError;
}
