import { bounds } from '../../../api/check-objects.ts';
import { CHECKPOINT_INTERVAL } from '../../../api/training/checkpoints/checkpoint-options.ts';
import { UsageError } from '../../../engine/errors.ts';
import { text, toggle, wholeNumber } from '../kinds.ts';
import { flagName, type Values } from '../option.ts';

export const checkpointOptions = {
  checkpointDir: text({
    describe: 'folder for checkpoints of this run; the last two are kept',
    group: 'Checkpoints:',
  }),
  checkpointInterval: wholeNumber({
    describe: 'iterations between two checkpoints; the last iteration has one too',
    group: 'Checkpoints:',
    least: 1,
    most: bounds.iterations,
    defaultText: String(CHECKPOINT_INTERVAL),
  }),
  resume: toggle({
    describe: 'continue from the newest checkpoint, or start from the beginning without one',
    group: 'Checkpoints:',
  }),
};

type CheckpointValues = Values<typeof checkpointOptions>;

/** The flags as options of `fit`. */
export function fitCheckpoints({
  checkpointDir,
  checkpointInterval,
  resume,
}: CheckpointValues): Partial<CheckpointValues> {
  return checkpointDir === undefined ? {} : { checkpointDir, checkpointInterval, resume };
}

/** Throws UsageError for a flag that has no effect with the others. */
export function checkCheckpoints(
  values: CheckpointValues & { readonly initModel?: string | undefined },
): void {
  const { checkpointDir, checkpointInterval, resume, initModel } = values;
  const idle = checkpointInterval !== undefined ? 'checkpointInterval' : resume ? 'resume' : undefined;
  if (checkpointDir === undefined && idle !== undefined)
    throw new UsageError(`--${flagName(idle)} acts only with --checkpoint-dir`, {
      advice: 'Give both, or leave it out',
    });
  if (checkpointDir !== undefined && initModel !== undefined)
    throw new UsageError(
      '--checkpoint-dir cannot be used with --init-model, whose few epochs are run again in a moment',
      { advice: 'Leave one of them out' },
    );
}
