import { DeviceLostError } from '../../engine/errors.ts';
import type { Model } from '../model.ts';

/**
 * The GPU was lost while training (exit 5); `model` has the factors of the last iteration that had been
 * copied to the host.
 */
export class LostTrainingError extends DeviceLostError {
  override readonly name = 'LostTrainingError';
  readonly model: Model;
  readonly iteration: number;
  /** For a run with checkpoints: the path of the last iteration's checkpoint. */
  readonly checkpoint: string | undefined;

  constructor(lost: DeviceLostError, model: Model, iteration: number, checkpoint?: string) {
    const advice =
      checkpoint === undefined
        ? {}
        : { advice: `Continue from the checkpoint ${checkpoint} with resume: true, on any device` };
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
