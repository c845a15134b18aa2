import { DeviceLostError } from '../../engine/errors.ts';
import type { Model } from '../model.ts';

/** The GPU was lost while training (exit 5); `model` is that of the last iteration whose factors had been copied to the host. */
export class LostTrainingError extends DeviceLostError {
  readonly model: Model;
  readonly iteration: number;

  constructor(lost: DeviceLostError, model: Model, iteration: number) {
    super(`${lost.summary}; the model of iteration ${iteration} is kept`, { ...lost.details, phase: 'train', cause: lost });
    this.model = model;
    this.iteration = iteration;
  }
}
