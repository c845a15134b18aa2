import type { ErrorSums } from './rating-errors.ts';
import type { StepParams } from './sgd-epoch.ts';
import type { ModelFactors } from './sgd-factors.ts';

/**
 * Where the factors of a run of SGD are, and what steps and measures them there; what controls the run is trainSgd's.
 *
 * Contract: a version is never changed once it is made, and lives until it is released. All numbers are on the scale of SgdData but
 * for `loss`. Any method throws DeviceLostError when a device is lost, and CancelledError when the run's signal fires.
 */
export interface SgdTrainer<Version> {
  /** Whether the factors go when a device is lost, so that copies on the host are worth their time. */
  readonly losable: boolean;
  /** Lays the ratings out and makes the version that training starts from. Once, before all else. Throws CapacityError. */
  start(): Promise<Version>;
  /** A new version: `from` stepped once on every rating. `onProgress` hears the part of the epoch that is done. */
  epoch(from: Version, params: StepParams, epoch: number, onProgress: (part: number) => void): Promise<Version>;
  /** J and the RMSE over the ratings, in the ratings' own unit. */
  loss(version: Version): Promise<{ readonly loss: number; readonly trainRmse: number }>;
  /** The errors over the validation set's known pairs; only where there are any. */
  testErrors(version: Version): Promise<ErrorSums>;
  /** The factors as a model has them, copied to the host. */
  fetch(version: Version): Promise<ModelFactors>;
  release(version: Version): void;
  /** Frees whatever the run still holds on its devices. */
  releaseAll(): void;
}
