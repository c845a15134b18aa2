/** Report of one iteration of ALS, or one epoch of SGD. */
export interface TrainingIteration {
  /** From 1. */
  readonly iteration: number;
  /**
   * Seconds of the iteration without evaluation: from the time at which its steps are sent to the end of its
   * own steps. If it was sent early, while the previous iteration or its evaluation was still running, the
   * time starts when these had ended. If one GPU runs iterations one after the other, the GPU's own clock
   * measures it.
   */
  readonly seconds: number;
  /** J, see TrainingErrors. */
  readonly loss: number;
  /** Absent for implicit data. */
  readonly trainRmse?: number;
  /**
   * True if `loss` and `trainRmse` were computed as part of solving the users, from the factors as its
   * kernels read them. They are then within 0.0003 of the ratings' deviation, and in float32 to about six
   * digits. Absent if a separate pass over the ratings computed them: after the last iteration, and for the
   * iteration whose factors are kept.
   */
  readonly fromSolve?: true;
  /**
   * For the last iteration: the errors that the solve computed, before a pass over the ratings replaced them.
   * A run that continues from this iteration reports these, as the uninterrupted run would have.
   */
  readonly solved?: { readonly loss: number; readonly trainRmse?: number };
  readonly testRmse?: number;
  /** Mean absolute error on the validation set. */
  readonly testMae?: number;
  /** The ranking metric of `earlyStopMetric` on the validation set, under its name. */
  readonly testMetrics?: Readonly<Record<string, number>>;
  /** For SGD: γ of the epoch; with AdaGrad α. */
  readonly rate?: number;
}
