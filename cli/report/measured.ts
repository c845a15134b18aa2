import type { Evaluation, RankingEvaluation, TrainingReport } from '../../index.ts';

/** Parts of evaluations and training reports that several texts and pages use. */
export type Baselines = NonNullable<Evaluation['baselines']>;
export type ErrorBreakdown = NonNullable<Evaluation['breakdown']>;
export type HeldOutRanking = NonNullable<TrainingReport['ranking']>;
export type MetricValues = RankingEvaluation['metrics'];
export type TrainingIteration = TrainingReport['iterations'][number];
export type TrainingWarning = TrainingReport['warnings'][number];
