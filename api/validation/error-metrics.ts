import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';

/** True for metrics of single ratings; the others are metrics of rankings. */
export function isError(metric: string): metric is 'rmse' | 'mae' {
  return metric === 'rmse' || metric === 'mae';
}

/** True for parameters, or saved parameters, of implicit data. */
export function isImplicit(params: unknown): boolean {
  return (params as JsonObject | undefined)?.implicitPrefs === true;
}

/**
 * Throws UsageError if a metric is an error of predictions and the estimator is for implicit data, whose scores
 * are preferences and not ratings.
 */
export function requireErrors(metric: string, estimator: object): void {
  if (isError(metric) && 'params' in estimator && isImplicit(estimator.params))
    throw new UsageError(`implicit data have no ${metric.toUpperCase()}; set metric: 'ndcg@20'`);
}
