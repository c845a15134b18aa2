import type { TrialParams } from './search-space.ts';

/** A trial before it runs. */
export interface PlannedTrial {
  /** From 1. */
  readonly number: number;
  readonly params: TrialParams;
}

/** Successive halving: after each rung, one of this number of trials continues. */
export const HALVING_RATE = 3;

/**
 * With `warm`, groups trials that differ only in λ into chains, from the largest λ to the smallest: each
 * trial starts with the factors of the one before. Other trials are chains of their own. Chains are
 * independent of each other.
 */
export function chainsOf(trials: readonly PlannedTrial[], warm: boolean): PlannedTrial[][] {
  if (!warm) return trials.map((trial) => [trial]);
  const chains = new Map<string, PlannedTrial[]>();
  for (const trial of trials) {
    const { regParam, ...others } = trial.params;
    const key = typeof regParam === 'number' ? JSON.stringify(others) : `${trial.number}`;
    chains.set(key, [...(chains.get(key) ?? []), trial]);
  }
  return [...chains.values()].map((chain) =>
    chain.toSorted((a, b) => Number(b.params.regParam) - Number(a.params.regParam) || a.number - b.number),
  );
}

/** Iterations of a trial that starts with the factors of a larger λ. */
export function warmIterations(maxIter: number): number {
  return Math.ceil(maxIter / 2);
}

/** One rung of successive halving: total iterations of each trial, and the number of trials that continue. */
export interface Rung {
  /** Share of the trial's own iterations. */
  readonly share: number;
  readonly survivors: number;
}

/**
 * The rungs for a number of trials (Jamieson, Talwalkar 2016, Non-stochastic best arm identification and
 * hyperparameter optimization): a third of the trials continues with three times the iterations, and the last
 * rung has all iterations. The first has at least one iteration.
 *
 *     27 trials of 10 iterations    27 x 1, 9 x 3, 3 x 10 iterations
 */
export function rungsOf(trials: number, maxIter: number): Rung[] {
  const steps = Math.max(0, Math.min(Math.floor(logOf(trials)), Math.floor(logOf(maxIter))));
  return Array.from({ length: steps + 1 }, (_, rung) => ({
    share: HALVING_RATE ** (rung - steps),
    survivors: rung === steps ? 1 : Math.max(1, Math.ceil(trials / HALVING_RATE ** (rung + 1))),
  }));
}

/** Rounded, since the computed logarithm of 27 to the base 3 is just below 3. */
function logOf(value: number): number {
  return Number((Math.log(value) / Math.log(HALVING_RATE)).toFixed(9));
}
