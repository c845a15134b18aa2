/**
 * FactorFlow: matrix factorization at any scale, from TypeScript. Every public name is here; see README.md
 * for a tour and ARCHITECTURE.md for how the parts fit together.
 *
 */
// oxlint-disable-next-line import/no-unassigned-import -- First, for its effect.
import './api/require-host.ts';

export { ALS, type AlsOptions } from './api/training/als.ts';
export { chooseTrainer, type ChosenTrainer, type TrainerOptions } from './api/training/choose-trainer.ts';
export {
  type CrossValidation,
  type CrossValidationMetric,
  type CrossValidationResult,
  CrossValidator,
  type CrossValidatorOptions,
  type Estimator,
  type FoldErrors,
} from './api/validation/cross-validator.ts';
export {
  Dataset,
  type LeaveOutOptions,
  type SplitParts,
  type TimeSplitOptions,
  type TrainTest,
} from './api/dataset.ts';
export type { DeviceName, DeviceRequest } from './api/devices/device-request.ts';
export { ExplainedPlan } from './api/training/plans/explained-plan.ts';
export { LostTrainingError } from './api/training/lost-training.ts';
export { type FoldedUsers, Model } from './api/model.ts';
export type { ModelParts } from './api/model-parts.ts';
export type { AlsTraining, SgdTraining, TrainingReport, TrainingRun } from './api/reports/training-report.ts';
export type { SessionDevice } from './api/devices/open-devices.ts';
export type { RankingOptions } from './api/validation/ranking-options.ts';
export type { RankUsersOption } from './api/validation/rank-users.ts';
export { Profile, type ProfileReport } from './api/reports/profile.ts';
export { Trace } from './api/reports/trace.ts';
export { paramGrid } from './api/validation/param-grid.ts';
export type { PlannedTrial } from './api/validation/tuning/schedule.ts';
export {
  type NumberRange,
  type SearchSpace,
  type TrialParams,
} from './api/validation/tuning/search-space.ts';
export type {
  SearchStrategy,
  TrainValidationSplitOptions,
  TuneOptions,
  Tuning,
} from './api/validation/tuning/tuning-options.ts';
export { TrainValidationSplit } from './api/validation/tuning/train-validation-split.ts';
export { type Trial, type TunedEstimator, type TuningMetric } from './api/validation/tuning/trial.ts';
export type { CheckpointOptions } from './api/training/checkpoints/checkpoint-options.ts';
export type { ResumedFrom } from './api/training/checkpoints/run-checkpoints.ts';
export type { FitOptions, PlanOptions, RatingOptions } from './api/rating-input.ts';
export type {
  ItemsOptions,
  NameOptions,
  RecommendOptions,
  RequestOptions,
  UnknownUsers,
  UsersOptions,
} from './api/serving/recommend-options.ts';
export type { ItemNamesOptions } from './api/serving/read-item-names.ts';
export type { FactorArrays } from './api/serving/factor-arrays.ts';
export type { ExportOptions } from './connectors/model/export-factors.ts';
export type { FoldedCounts, FoldInOptions } from './api/serving/fold-in.ts';
export type { Explanation, ExplainOptions } from './api/serving/explain.ts';
export type { RatedItem } from './api/serving/fold-in-request.ts';
export type { RatingsOfUser } from './api/serving/ratings-of-user.ts';
export type { RecommendedItem, UserRecommendations } from './api/serving/request.ts';
export type { SimilarOptions } from './api/serving/similar-rows.ts';
export type { RunOptions, RunSession } from './api/run-session.ts';
export { Session } from './api/session.ts';
export type { SessionOptions } from './api/session-options.ts';
export type {
  FromOptions,
  FromRowsOptions,
  NamedColumns,
  ReadAnyOptions,
  FolderOptions,
  ReadArrowOptions,
  ReadNdjsonOptions,
  ReadParquetOptions,
  ReadTextOptions,
} from './api/reading.ts';
export { SGD, type SgdOptions } from './api/training/sgd.ts';
export type { UpdateOptions } from './api/training/update-options.ts';
export type { Writers } from './api/writers.ts';
export { ArrowSink, type ArrowSinkOptions } from './connectors/arrow/arrow-sink.ts';
export { type ArrowLayout, ArrowSource, type ArrowSourceOptions } from './connectors/arrow/arrow-source.ts';
export type { FileFormat, FilePart, OpenFile } from './connectors/files/file-format.ts';
export type { FileSetSource } from './connectors/files/file-set-source.ts';
export type { FileFormatName } from './connectors/files/format-names.ts';
export type { ConstantColumn, FolderColumns, PartitionColumn } from './connectors/folders/folder-columns.ts';
export type { RowInput, Rows } from './connectors/rows/row-pages.ts';
export { RowSource, type RowSourceOptions } from './connectors/rows/row-source.ts';
export { openSource, type OpenSourceOptions } from './connectors/open-source.ts';
export type { CheckedSink, WriteSummary, WritingContext } from './connectors/output/checked-sink.ts';
export type { Codec, ParquetBackendName, ParquetFileInfo } from './connectors/parquet/backend.ts';
export type { ColumnChunkInfo, ColumnStatistics, RowGroupInfo } from './connectors/parquet/footer.ts';
export type { PageIndexPlace } from './connectors/parquet/pages/page-index-place.ts';
export type { ParquetSinkOptions } from './connectors/parquet/write/parquet-files.ts';
export { ParquetSink } from './connectors/parquet/parquet-sink.ts';
export { ParquetSource, type ParquetSourceOptions } from './connectors/parquet/parquet-source.ts';
export type { RowRange } from './connectors/parquet/pages/cut-row-group.ts';
export type { RowGroupRequest } from './connectors/parquet/read-row-groups.ts';
export type { ArrowCodec } from './connectors/arrow/buffer-codecs.ts';
export type { Compression } from './connectors/compression/compressions.ts';
export { NdjsonSink, type NdjsonSinkOptions } from './connectors/ndjson/ndjson-sink.ts';
export { NdjsonSource, type NdjsonSourceOptions } from './connectors/ndjson/ndjson-source.ts';
export type { ValueRules } from './connectors/lines/read-column.ts';
export type { FieldBlock, ScanBounds } from './connectors/lines/field-block.ts';
export type { PlainMarks } from './connectors/lines/row-layout.ts';
export type { RowLayout, RowScan, ValueOptions } from './connectors/lines/row-layout.ts';
export type { TextDialect } from './connectors/text/dialect.ts';
export type { TextLayout, TextOptions } from './connectors/text/text-layout.ts';
export { TextSink, type TextSinkOptions } from './connectors/text/text-sink.ts';
export { TextSource, type TextSourceOptions } from './connectors/text/text-source.ts';
export type { TextType } from './connectors/lines/text-type.ts';
export {
  CancelledError,
  CapacityError,
  DataError,
  DeviceLostError,
  type DivergedDetails,
  DivergedError,
  type ErrorCode,
  type ErrorDetails,
  type ExitCode,
  FactorFlowError,
  UsageError,
} from './engine/errors.ts';
export type { EventSink, ProgressEvent } from './engine/events.ts';
export type { StagedCopies } from './engine/run/staged-copies.ts';
export type {
  Device,
  Executor,
  FileMemories,
  HostStore,
  SpillStore,
  WireMemory,
  WireRequest,
} from './engine/run/device.ts';
export type { Wire } from './engine/run/step.ts';
export type { DeviceInfo, DeviceLimits } from './engine/plan/device-info.ts';
export { explain } from './engine/plan/explain.ts';
export type { Json, JsonObject } from './engine/json.ts';
export type { Id } from './engine/keys/find-id.ts';
export type { IdForm } from './engine/keys/id-form.ts';
export type { KeyColumn } from './engine/keys/key-column.ts';
export type { RowParts } from './engine/row-parts.ts';
export type { LogicalPlan } from './engine/stream/logical-plan.ts';
export type { Measure, RunMetrics } from './engine/metrics.ts';
export type { PhaseShare, Spans, Usage } from './engine/trace/spans.ts';
export type {
  Description,
  MixedColumn,
  Operator,
  Sink,
  Source,
  SourceParts,
  SourceStatistics,
  ValueNeeds,
} from './engine/stream/operator.ts';
export type { ExecutionContext, WorkingStage } from './engine/run/context.ts';
export type {
  ColumnKind,
  FileMemory,
  InFiles,
  MatrixShape,
  Partition,
  PartitionRef,
  SharedColumn,
} from './engine/partition.ts';
export type { SpilledPartition } from './engine/partition.ts';
export type { WrittenFile } from './engine/spill/spilled-partition.ts';
export type { KeptVersions } from './engine/plan/bound-plan.ts';
export {
  type Estimate,
  type MemoryPlan,
  type PhysicalPlan,
  PLAN_VERSION,
  type PlannedPhase,
  type PlannedStage,
  type RejectedPlan,
} from './engine/plan/physical-plan.ts';
export type {
  BlockGrid,
  DataPart,
  DataSet,
  DataUse,
  DataUses,
  PhaseName,
  Stage,
  TaskPlan,
  Turns,
  Work,
} from './engine/plan/stages.ts';
export type { Place } from './engine/plan/place.ts';
export type {
  ByteRange,
  ReadSplitOptions,
  SourceSplit,
  SourceSplits,
  SplitEnd,
} from './engine/stream/split.ts';
export { batchStream, type BatchStream } from './engine/stream/stream.ts';
export type { Task, TaskMetrics, TaskResult } from './engine/task.ts';
export type { MemoryMeter } from './engine/run/memory-meter.ts';
export type { DeviceSpan, Tracer, TraceSpan } from './engine/trace/trace.ts';
export type { AlsParams, WeightForm } from './operators/als/params.ts';
export type { SizedAlsParams } from './operators/als/implicit/sized-params.ts';
export type { Baselines, DampedMeans, PairErrors } from './operators/evaluation/baselines.ts';
export type { Interval } from './operators/evaluation/ranking/bootstrap.ts';
export type { Evaluation } from './operators/evaluation/evaluate.ts';
export type { CalibrationBin, ErrorBin, ErrorBreakdown } from './operators/evaluation/error-bins.ts';
export { Exclusions } from './operators/serving/exclusions.ts';
export { type ItemNameEntry, ItemNames, type NameMatch } from './operators/serving/item-names.ts';
export type { ItemLists } from './operators/serving/choose-items.ts';
export type { CandidateCounts } from './operators/evaluation/ranking/candidate-lists.ts';
export type { RankingEvaluation } from './operators/evaluation/ranking/evaluate-ranking.ts';
export type { HeldOutRanking } from './operators/evaluation/ranking/held-out-ranking.ts';
export type { MetricValues } from './operators/evaluation/ranking/measure-rankings.ts';
export {
  type RankingMetric,
  type RankingMetricName,
  rankingMetricNames,
} from './operators/evaluation/ranking/ranking-metrics.ts';
export type { TrainingWarning, WarningCode } from './operators/evaluation/rating-warnings.ts';
export type { FactorModel } from './operators/serving/factor-model.ts';
export type { ColumnNames } from './operators/ratings/rows/column-names.ts';
export type { PairOptions } from './operators/ratings/rows/pair-columns.ts';
export type { CommonParams, EarlyStopMetric } from './operators/params/common.ts';
export type { OneOrTwo } from './operators/params/table.ts';
export type { ColdStart } from './operators/serving/predict.ts';
export type { SplitOptions } from './operators/splits/random-split.ts';
export type { BadRowPolicy } from './operators/ratings/rows/bad-rows.ts';
export type { SgdParams } from './operators/sgd/params.ts';
export type { Similarity } from './operators/serving/similar.ts';
export type { TrainingIteration } from './operators/training/iteration.ts';
export { Cases, col, Column, type ColumnOrValue, lit, when } from './api/expressions.ts';
export { functions, type TimeUnit } from './api/functions.ts';
export type { OrderKey } from './api/order-by.ts';
export { SortOrder } from './api/sort-order.ts';
export type { SortKey } from './engine/sorting/sort-keys.ts';
export {
  AggregateColumn,
  collectList,
  count,
  countDistinct,
  first,
  last,
  max,
  mean,
  min,
  stddev,
  sum,
} from './api/aggregates.ts';
export { GroupedRows } from './api/grouped-rows.ts';
export type { AggregateName } from './operators/dataflow/aggregate/aggregation.ts';
export type { ColumnSummary } from './api/inspect/summaries.ts';
export type { ColumnRange } from './api/reading.ts';
export type { JoinKeys, JoinOptions } from './api/join-plan.ts';
export type { ExplainRowsOptions, PlainRow } from './api/readable-rows.ts';
export type { MapBatchesOptions, SampleOptions } from './api/rows.ts';
export type { JoinKind } from './operators/dataflow/join/join-kinds.ts';
export type { PortableOperator } from './engine/stream/operator.ts';
export type {
  Bound,
  Call,
  Cast,
  ColumnName,
  Expression,
  Literal,
  Plain,
  When,
} from './engine/expressions/expression.ts';
export type { ValueType } from './engine/expressions/types.ts';
export type { BatchFunction, ModuleFunction } from './operators/dataflow/map-batches.ts';
