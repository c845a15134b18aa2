import type { EventSink } from '../../index.ts';
import type { Baselines, TrainingWarning } from './measured.ts';

type Errors = Readonly<Record<'rmse' | 'mae', number | undefined>>;

/**
 * "0.8731; the mean 1.0430, damped means 0.9012": an error compared with simple predictors over the same
 * pairs.
 */
export function besideMeans(of: keyof Errors, own: number, baselines: Baselines | undefined): string {
  if (baselines === undefined) return own.toFixed(4);
  return `${own.toFixed(4)}; the mean ${figure(baselines.mean[of])}, damped means ${figure(baselines.dampedMeans[of])}`;
}

function figure(value: number): string {
  return Number.isFinite(value) ? value.toFixed(4) : 'beyond the numbers';
}

/** Warnings about a model that was just trained or evaluated; the command's result shows them. */
const inResult: readonly (string | undefined)[] = [
  'no-better-than-means',
  'no-better-than-popularity',
  'past-best',
] satisfies TrainingWarning['code'][];

/** True for a warning that is shown in a result; others are only on stderr. */
export function isVerdict({ code }: { readonly code?: string }): boolean {
  return inResult.includes(code);
}

/** A listener for commands whose result shows the warnings about the model: it drops these events. */
export function withoutVerdict(onEvent: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'warning' || !isVerdict(event)) onEvent(event);
  };
}
