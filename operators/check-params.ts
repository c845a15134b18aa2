import { UsageError } from '../engine/errors.ts';

/** Throws UsageError naming the parameter, its range and what was given. */
export function wholeNumber(name: string, value: unknown, least: number, most: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return;
  throw new UsageError(`${name} must be a whole number from ${least} to ${most.toLocaleString('en')}, got ${String(value)}`);
}

/** What ends a run before its last iteration; see StoppingRule. */
export function checkEnding({ earlyStop, targetRmse }: { readonly earlyStop?: number; readonly targetRmse?: number }): void {
  if (earlyStop !== undefined) wholeNumber('earlyStop', earlyStop, 1, 1_000_000);
  if (targetRmse !== undefined && !(targetRmse > 0 && Number.isFinite(targetRmse))) throw new UsageError(`targetRmse must be a number > 0, got ${targetRmse}`);
}
