import type { RankingEvaluation, TuningBaselines } from '../../index.ts';
import type { MetricValues } from './measured.ts';

/** Titles of baselines in tables. */
const titles: Readonly<Record<keyof TuningBaselines, string>> = {
  popularity: 'popularity',
  itemMean: 'item mean',
  itemKnn: 'item-kNN',
  ease: 'EASE',
  mean: 'the mean',
  dampedMeans: 'damped means',
};

type Titled<Value> = readonly (readonly [title: string, value: Value])[];

/** The measured baselines of an evaluation with their titles in tables. */
export function namedBaselines(baselines: RankingEvaluation['baselines']): Titled<MetricValues> {
  return titled<MetricValues>(baselines);
}

/** The baselines of a search with their titles. */
export function searchBaselines(baselines: TuningBaselines): Titled<number> {
  return titled<number>(baselines);
}

function titled<Value>(values: Partial<Record<keyof TuningBaselines, Value>>): Titled<Value> {
  return Object.entries(titles).flatMap(([name, title]) => {
    const value = values[name as keyof TuningBaselines];
    return value === undefined ? [] : [[title, value] as const];
  });
}
