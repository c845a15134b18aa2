/** The report of one iteration of ALS, or one epoch of SGD. */
export interface TrainingIteration {
  /** From 1. */
  readonly iteration: number;
  /**
   * Time without evaluation, in seconds: from the moment at which its steps are sent, or from the end of the
   * iteration before it and of its evaluation where it was sent earlier, to the end of its own steps. Of
   * iterations that one GPU runs one after the other the GPU's own clock measures it.
   */
  readonly seconds: number;
  /** J, see TrainingErrors. */
  readonly loss: number;
  /** Absent for implicit data. */
  readonly trainRmse?: number;
  /**
   * `loss` and `trainRmse` were computed by the solve of the users, for the factors as its kernels read them:
   * within 0.0003 of the ratings' deviation, in float32 to about six digits. Absent where a pass over the
   * ratings computed them: after the last iteration, and for the iteration whose factors are kept.
   */
  readonly fromSolve?: true;
  /**
   * For the last iteration: the errors computed by the solve, which a pass over the ratings has replaced. A
   * run that continues from it uses them again.
   */
  readonly solved?: { readonly loss: number; readonly trainRmse?: number };
  readonly testRmse?: number;
  /** Mean absolute error on the validation set. */
  readonly testMae?: number;
  /** The ranking metric of `earlyStopMetric` on the validation set, by its name. */
  readonly testMetrics?: Readonly<Record<string, number>>;
  /** Of SGD: γ of the epoch; with AdaGrad α. */
  readonly rate?: number;
}
