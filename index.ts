/**
 * FactorFlow: matrix factorization at any scale, from TypeScript. Every public name is here; see README.md
 * for a tour and ARCHITECTURE.md for how the parts fit together.
 *
 * A type has a name here if programs annotate it. Types of single arguments and results are reached from the
 * methods that have them: `Parameters<Dataset['timeSplit']>[0]`, `Awaited<ReturnType<Model['foldIn']>>`.
 *
 */
// oxlint-disable-next-line import/no-unassigned-import -- First, for its effect.
import './api/require-host.ts';
// A session, its progress and its time.
export { Session } from './api/session.ts';

export type { SessionOptions } from './api/session-options.ts';
export type { DeviceRequest } from './api/devices/device-request.ts';
export type { RunOptions } from './api/run-session.ts';
export type { EventSink, ProgressEvent } from './engine/events.ts';
export { Profile } from './api/reports/profile.ts';
export { Trace } from './api/reports/trace.ts';

// Rows: tables that are read, changed and written.
export { Dataset, type TrainTest } from './api/dataset.ts';
export type { RowOf } from './api/row-types.ts';
export { col, Column, lit, when } from './api/expressions.ts';
export { functions } from './api/functions.ts';
export { expr } from './api/parse-column.ts';
export {
  collectList,
  collectSet,
  count,
  countDistinct,
  first,
  last,
  max,
  maxBy,
  mean,
  median,
  min,
  minBy,
  quantile,
  stddev,
  sum,
} from './api/aggregates.ts';
export {
  denseRank,
  type FrameRange,
  lag,
  lead,
  rank,
  rowNumber,
  sessionNumber,
  type ShiftOptions,
  type Window,
  WindowFunction,
} from './api/windows.ts';

// Trainers and their plans.
export { ALS, type AlsOptions } from './api/training/als.ts';
export { SGD, type SgdOptions } from './api/training/sgd.ts';
export { chooseTrainer } from './api/training/choose-trainer.ts';
export type { FitOptions } from './api/fit-options.ts';
export type { CheckpointOptions } from './api/training/checkpoints/checkpoint-options.ts';
export type { EarlyStopMetric } from './operators/params/common.ts';
export { ExplainedPlan } from './api/training/plans/explained-plan.ts';
export { explain } from './engine/plan/explain.ts';
export type { PhysicalPlan } from './engine/plan/physical-plan.ts';

// Models: what is recommended, and how good it is.
export { Model } from './api/model.ts';
export type { Id } from './engine/keys/find-id.ts';
export { ItemNames } from './operators/serving/item-names.ts';
export type { ItemFilter } from './api/serving/request.ts';
export type { ItemFilters } from './api/serving/item-filters.ts';
export type { Exclusions } from './operators/serving/choose-items.ts';
export type { RecommendOptions } from './api/serving/recommend-datasets.ts';
export type { RequestOptions } from './api/serving/request.ts';
export type { UserRecommendations } from './api/serving/request.ts';
export type { Explanation } from './api/serving/explain.ts';
export type { TrainingReport } from './api/reports/training-report.ts';
export type { Evaluation } from './operators/evaluation/evaluate.ts';
export type { RankingOptions } from './api/validation/ranking-options.ts';
export type { SaveOptions } from './api/model.ts';
export type { RankingEvaluation } from './operators/evaluation/ranking/evaluate-ranking.ts';

// Choosing parameters.
export { paramGrid } from './api/validation/tuning/search-space.ts';
export { CrossValidator, type CrossValidatorOptions } from './api/validation/cross-validator.ts';
export { TrainValidationSplit } from './api/validation/tuning/train-validation-split.ts';
export type {
  TrainValidationSplitOptions,
  Tuning,
  TuningBaselines,
} from './api/validation/tuning/tuning-options.ts';
export type { Trial, TuningMetric } from './api/validation/tuning/trial.ts';

// Errors, each with its code and exit status.
export {
  CancelledError,
  CapacityError,
  DataError,
  DeviceLostError,
  DivergedError,
  type ErrorCode,
  FactorFlowError,
  UsageError,
} from './engine/errors.ts';
export { LostTrainingError } from './api/training/lost-training.ts';

// Sources and sinks, for `session.source(source)` and `dataset.runInto(sink)`.
export { ArrowSource } from './connectors/arrow/arrow-source.ts';
export { NdjsonSource } from './connectors/ndjson/ndjson-source.ts';
export { ParquetSource } from './connectors/parquet/parquet-source.ts';
export { RowSource } from './connectors/rows/row-source.ts';
export { TextSource } from './connectors/text/text-source.ts';
export { ArrowSink } from './connectors/arrow/arrow-sink.ts';
export { NdjsonSink } from './connectors/ndjson/ndjson-sink.ts';
export { ParquetSink } from './connectors/parquet/parquet-sink.ts';
export { TextSink } from './connectors/text/text-sink.ts';

// Contracts for operators, sources and sinks of one's own.
export type {
  Description,
  Operator,
  Sink,
  Source,
  SourceStatistics,
  ValueNeeds,
} from './engine/stream/operator.ts';
export type { ExecutionContext } from './engine/run/context.ts';
export { batchStream, type BatchStream } from './engine/stream/stream.ts';
export type { JsonObject } from './engine/json.ts';
