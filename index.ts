/**
 * FactorFlow: matrix factorization at any scale, from TypeScript. Every public name is here; see README.md for a tour and
 * ARCHITECTURE.md for how the parts fit together.
 */
export { ALS, type AlsOptions } from './api/als.ts';
export {
  type CrossValidation,
  type CrossValidationMetric,
  type CrossValidationResult,
  CrossValidator,
  type CrossValidatorOptions,
  type Estimator,
  type FoldErrors,
} from './api/cross-validator.ts';
export { type ChosenTrainer, chooseTrainer, type TrainerOptions } from './api/choose-trainer.ts';
export { Dataset, type SplitParts, type TimeSplitOptions, type TrainTest } from './api/dataset.ts';
export { LostTrainingError } from './api/lost-training.ts';
export { ExplainedPlan } from './api/explained-plan.ts';
export { Model, type RecommendOptions, type SimilarOptions, type TrainingReport } from './api/model.ts';
export type { DeviceName, DeviceRequest } from './api/device-request.ts';
export type { SessionDevice } from './api/open-devices.ts';
export { paramGrid } from './api/param-grid.ts';
export type { FitOptions, RatingOptions } from './api/rating-input.ts';
export { SGD, type SgdOptions } from './api/sgd.ts';
export { Session, type RunOptions, type SessionOptions } from './api/session.ts';
export type { UpdateOptions } from './api/update-model.ts';
export { ArrowSink, type ArrowSinkOptions } from './connectors/arrow/arrow-sink.ts';
export { ArrowSource } from './connectors/arrow/arrow-source.ts';
export { openSource, type OpenSourceOptions } from './connectors/open-source.ts';
export { ParquetSink, type ParquetSinkOptions } from './connectors/parquet/parquet-sink.ts';
export type { WriteSummary } from './connectors/output/checked-sink.ts';
export { ParquetSource, type ParquetSourceOptions } from './connectors/parquet/parquet-source.ts';
export { TextSink, type TextSinkOptions } from './connectors/text/text-sink.ts';
export { TextSource, type TextSourceOptions } from './connectors/text/text-source.ts';
export { CancelledError, CapacityError, DataError, DeviceLostError, DivergedError, type ErrorDetails, type ExitCode, FactorFlowError, UsageError } from './engine/errors.ts';
export type { EventSink, ProgressEvent } from './engine/events.ts';
export type { Json, JsonObject } from './engine/json.ts';
export { explain } from './engine/explain.ts';
export type { ExecutionContext, Operator, Sink, Source, SourceStatistics } from './engine/operator.ts';
export type { PhysicalPlan, PlannedStage } from './engine/plan/physical-plan.ts';
export { batchStream, type BatchStream } from './engine/stream.ts';
export type { TrainingIteration } from './operators/training/iteration.ts';
export type { AlsParams } from './operators/als/params.ts';
export type { CommonParams } from './operators/params/common.ts';
export type { Evaluation } from './operators/evaluate.ts';
export type { SgdParams } from './operators/sgd/params.ts';
export type { SplitOptions } from './operators/random-split.ts';
