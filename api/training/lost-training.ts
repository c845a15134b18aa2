import { DeviceLostError } from '../../engine/errors.ts';
import type { Model } from '../model.ts';

/**
 * The GPU was lost while training (exit 5); `model` is that of the last iteration whose factors had been
 * copied to the host.
 */
export class LostTrainingError extends DeviceLostError {
  readonly model: Model;
  readonly iteration: number;
  /** The path of the checkpoint of the last iteration that was copied, in a run that has checkpoints. */
  readonly checkpoint: string | undefined;

  constructor(lost: DeviceLostError, model: Model, iteration: number, checkpoint?: string) {
    const advice =
      checkpoint === undefined
        ? {}
        : { advice: `Go on from the checkpoint ${checkpoint} with resume: true, on any device` };
    super(`${lost.summary}; the model of iteration ${iteration} is kept`, {
      ...lost.details,
      phase: 'train',
      cause: lost,
      ...advice,
    });
    this.model = model;
    this.iteration = iteration;
    this.checkpoint = checkpoint;
  }
}
