import type { Baselines, EventSink } from '../../index.ts';

type Errors = Readonly<Record<'rmse' | 'mae', number | undefined>>;

/** "0.8731; the mean 1.0430, damped means 0.9012": an error beside those of simple predictors, over the same pairs. */
export function besideMeans(of: keyof Errors, own: number, baselines: Baselines | undefined): string {
  if (baselines === undefined) return own.toFixed(4);
  return `${own.toFixed(4)}; the mean ${figure(baselines.mean[of])}, damped means ${figure(baselines.dampedMeans[of])}`;
}

function figure(value: number): string {
  return Number.isFinite(value) ? value.toFixed(4) : 'beyond the numbers';
}

/** A listener for commands whose result has the comparison with means or popularity: its event is not passed on. */
export function withoutComparison(onEvent: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'warning' || (event.code !== 'no-better-than-means' && event.code !== 'no-better-than-popularity')) onEvent(event);
  };
}
