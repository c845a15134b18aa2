import { UsageError } from '../../../engine/errors.ts';
import { checkpointParams } from '../../option-params.ts';

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

/** Throws UsageError for an option that has no effect. */
export function checkCheckpointOptions({
  checkpointDir,
  checkpointInterval,
  resume,
}: CheckpointOptions): void {
  if (checkpointDir !== undefined) return;
  const idle = checkpointInterval !== undefined ? 'checkpointInterval' : resume ? 'resume: true' : undefined;
  if (idle !== undefined)
    throw new UsageError(`${idle} acts only with checkpointDir`, { advice: 'Give both, or leave it out' });
}

/** Iterations between checkpoints; undefined without checkpoints. */
export function intervalOf({
  checkpointDir,
  checkpointInterval = checkpointParams.checkpointInterval.fallback,
}: CheckpointOptions): number | undefined {
  return checkpointDir === undefined ? undefined : checkpointInterval;
}
