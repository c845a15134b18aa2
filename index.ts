/**
 * FactorFlow: matrix factorization at any scale, from TypeScript. Every public name is here; see README.md for a tour and
 * ARCHITECTURE.md for how the parts fit together.
 */
// oxlint-disable-next-line import/no-unassigned-import -- First, for its effect.
import './api/require-host.ts';

export { ALS, type AlsOptions } from './api/training/als.ts';
export { chooseTrainer, type ChosenTrainer, type TrainerOptions } from './api/training/choose-trainer.ts';
export { type CrossValidation, type CrossValidationMetric, type CrossValidationResult, CrossValidator, type CrossValidatorOptions, type Estimator, type FoldErrors } from './api/validation/cross-validator.ts';
export { Dataset, type SplitParts, type TimeSplitOptions, type TrainTest } from './api/dataset.ts';
export type { DeviceName, DeviceRequest } from './api/devices/device-request.ts';
export { ExplainedPlan } from './api/training/explained-plan.ts';
export { LostTrainingError } from './api/training/lost-training.ts';
export { type AlsTraining, Model, type ModelParts, type RecommendOptions, type SgdTraining, type SimilarOptions, type TrainingReport, type TrainingRun } from './api/model.ts';
export type { SessionDevice } from './api/devices/open-devices.ts';
export { paramGrid } from './api/validation/param-grid.ts';
export type { FitOptions, PlanOptions, RatingOptions } from './api/rating-input.ts';
export { type RunOptions, Session, type SessionOptions } from './api/session.ts';
export { SGD, type SgdOptions } from './api/training/sgd.ts';
export type { UpdateOptions } from './api/training/update-model.ts';
export { ArrowSink, type ArrowSinkOptions } from './connectors/arrow/arrow-sink.ts';
export { type ArrowLayout, ArrowSource } from './connectors/arrow/arrow-source.ts';
export type { FileFormat, FileSetSource, OpenFile } from './connectors/files/file-set-source.ts';
export type { FileFormatName } from './connectors/files/format-names.ts';
export type { ConstantColumn, PartitionColumn } from './connectors/files/hive-partitions.ts';
export { openSource, type OpenSourceOptions } from './connectors/open-source.ts';
export type { CheckedSink, WriteSummary } from './connectors/output/checked-sink.ts';
export type { Codec, ParquetBackendName, ParquetFileInfo } from './connectors/parquet/backend.ts';
export type { ColumnChunkInfo, ColumnStatistics, RowGroupInfo } from './connectors/parquet/footer.ts';
export { ParquetSink, type ParquetSinkOptions } from './connectors/parquet/parquet-sink.ts';
export { ParquetSource, type ParquetSourceOptions } from './connectors/parquet/parquet-source.ts';
export type { RowGroupRequest } from './connectors/parquet/read-row-groups.ts';
export type { RowGroupFilter } from './connectors/parquet/row-group-filter.ts';
export type { TextDialect } from './connectors/text/dialect.ts';
export type { TextLayout, TextOptions } from './connectors/text/text-layout.ts';
export { TextSink, type TextSinkOptions } from './connectors/text/text-sink.ts';
export { TextSource, type TextSourceOptions } from './connectors/text/text-source.ts';
export type { TextType } from './connectors/text/text-type.ts';
export { CancelledError, CapacityError, DataError, DeviceLostError, type DivergedDetails, DivergedError, type ErrorCode, type ErrorDetails, type ExitCode, FactorFlowError, UsageError } from './engine/errors.ts';
export type { EventSink, ProgressEvent } from './engine/events.ts';
export type { Device, Executor, HostStore } from './engine/run/device.ts';
export type { DeviceInfo, DeviceLimits } from './engine/plan/device-info.ts';
export { explain } from './engine/plan/explain.ts';
export type { Json, JsonObject } from './engine/json.ts';
export type { KeyColumn } from './engine/keys/key-column.ts';
export type { LogicalPlan } from './engine/stream/logical-plan.ts';
export type { Measure, RunMetrics } from './engine/metrics.ts';
export type { Description, Operator, Sink, Source, SourceStatistics } from './engine/stream/operator.ts';
export type { ExecutionContext } from './engine/run/context.ts';
export type { MatrixShape, Partition, PartitionRef, SharedColumn } from './engine/partition.ts';
export type { KeptVersions } from './engine/plan/bound-plan.ts';
export { type LoadStage, type MemoryPlan, type PhysicalPlan, PLAN_VERSION, type PlannedPhase, type PlannedStage } from './engine/plan/physical-plan.ts';
export type { BlockGrid, DataPart, DataSet, DataUses, PhaseName, Stage, TaskPlan, Work } from './engine/plan/stages.ts';
export type { Place } from './engine/plan/place.ts';
export { batchStream, type BatchStream } from './engine/stream/stream.ts';
export type { Task, TaskMetrics, TaskResult } from './engine/task.ts';
export type { AlsParams } from './operators/als/params.ts';
export type { Evaluation } from './operators/evaluation/evaluate.ts';
export type { FactorModel } from './operators/serving/factor-model.ts';
export type { PairOptions } from './operators/ratings/pair-columns.ts';
export type { CommonParams } from './operators/params/common.ts';
export type { ColdStart } from './operators/serving/predict.ts';
export type { SplitOptions } from './operators/splits/random-split.ts';
export type { BadRowPolicy } from './operators/ratings/select-ratings.ts';
export type { SgdParams } from './operators/sgd/params.ts';
export type { Similarity } from './operators/serving/similar.ts';
export type { TrainingIteration } from './operators/training/iteration.ts';
