import { CancelledError, DeviceLostError, DivergedError } from '../../../engine/errors.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { LostTrainingError } from '../lost-training.ts';
import type { CheckpointOptions } from './checkpoint-options.ts';
import type { CheckpointedRun } from './checkpoint-state.ts';
import { RunCheckpoints } from './run-checkpoints.ts';

/**
 * Runs a training, with checkpoints if a folder is given. If it fails in a way from which a later run can
 * continue, the error names the last checkpoint.
 */
export async function withCheckpoints<Result>(
  { checkpointDir, ...options }: CheckpointOptions,
  run: CheckpointedRun,
  ctx: ExecutionContext,
  work: (checkpoints: RunCheckpoints | undefined) => Promise<Result>,
): Promise<Result> {
  if (checkpointDir === undefined) return work(undefined);
  const checkpoints = await RunCheckpoints.open({ checkpointDir, ...options }, run, ctx);
  try {
    const result = await work(checkpoints);
    await checkpoints.ready();
    return result;
  } catch (error) {
    await checkpoints.ready().catch(() => undefined);
    throw naming(error, checkpoints.last);
  } finally {
    await checkpoints.close();
  }
}

/** Adds the path of the last checkpoint to an error, as advice for continuing the training. */
function naming(error: unknown, last: RunCheckpoints['last']): unknown {
  if (last === undefined) return error;
  const kept = `the checkpoint of iteration ${last.iteration} is ${last.path}`;
  const continueAdvice = 'Continue from it with resume: true';
  if (error instanceof CancelledError)
    return new CancelledError({
      ...error.details,
      advice: `${kept[0].toUpperCase()}${kept.slice(1)}: continue from it with resume: true`,
      cause: error.details.cause,
    });
  if (error instanceof LostTrainingError)
    return new LostTrainingError(
      error.details.cause as DeviceLostError,
      error.model,
      error.iteration,
      last.path,
    );
  if (error instanceof DeviceLostError)
    return new DeviceLostError(`${error.summary}; ${kept}`, { ...error.details, advice: continueAdvice });
  if (error instanceof DivergedError) return new DivergedError(`${error.summary}; ${kept}`, error.details);
  return error;
}
