import { UsageError } from '../../../engine/errors.ts';
import { shown } from '../../../engine/format.ts';
import { MOST_ITERATIONS } from '../../../operators/params/common.ts';

/** Options of `fit` for runs that can be continued by another process: docs/checkpoints.md. */
export interface CheckpointOptions {
  /** Folder for checkpoints of this run only; created if missing. Default: no checkpoints. */
  readonly checkpointDir?: string;
  /** Iterations between checkpoints, 1 or more; the last iteration also has one. Default 10. */
  readonly checkpointInterval?: number;
  /**
   * Continues from the newest checkpoint in checkpointDir; without one, training starts from the beginning.
   * Default false: a folder with checkpoints is refused.
   */
  readonly resume?: boolean;
}

export const checkpointOptionNames = [
  'checkpointDir',
  'checkpointInterval',
  'resume',
] as const satisfies readonly (keyof CheckpointOptions)[];

export const CHECKPOINT_INTERVAL = 10;

/** Throws UsageError for an option that is out of range or has no effect. */
export function checkCheckpointOptions({
  checkpointDir,
  checkpointInterval,
  resume,
}: CheckpointOptions): void {
  if (checkpointDir !== undefined && (typeof checkpointDir !== 'string' || checkpointDir === ''))
    throw new UsageError(`checkpointDir must be the path of a folder, got ${shown(checkpointDir)}`);
  if (resume !== undefined && typeof resume !== 'boolean')
    throw new UsageError(`resume must be true or false, got ${shown(resume)}`);
  const isCount =
    Number.isInteger(checkpointInterval) &&
    Number(checkpointInterval) >= 1 &&
    Number(checkpointInterval) <= MOST_ITERATIONS;
  if (checkpointInterval !== undefined && !isCount)
    throw new UsageError(
      `checkpointInterval must be a whole number from 1 to ${MOST_ITERATIONS.toLocaleString('en')}, got ${shown(checkpointInterval)}`,
    );
  if (checkpointDir !== undefined) return;
  const idle = checkpointInterval !== undefined ? 'checkpointInterval' : resume ? 'resume: true' : undefined;
  if (idle !== undefined)
    throw new UsageError(`${idle} acts only with checkpointDir`, { advice: 'Give both, or leave it out' });
}

/** Iterations between checkpoints; undefined without checkpoints. */
export function intervalOf({
  checkpointDir,
  checkpointInterval = CHECKPOINT_INTERVAL,
}: CheckpointOptions): number | undefined {
  return checkpointDir === undefined ? undefined : checkpointInterval;
}
