/** The report of one iteration of ALS, or one epoch of SGD. */
export interface TrainingIteration {
  /** From 1. */
  readonly iteration: number;
  /** Time without evaluation. */
  readonly seconds: number;
  /** J, see TrainingErrors. */
  readonly loss: number;
  /** Absent for implicit data. */
  readonly trainRmse?: number;
  readonly testRmse?: number;
  /** Mean absolute error on the validation set. */
  readonly testMae?: number;
  /** The ranking metric of `earlyStopMetric` on the validation set, by its name. */
  readonly testMetrics?: Readonly<Record<string, number>>;
  /** Of SGD: γ of the epoch; with AdaGrad α. */
  readonly rate?: number;
}
