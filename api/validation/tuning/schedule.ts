import type { TrialParams } from './search-space.ts';

/** A trial before it ran. */
export interface PlannedTrial {
  /** From 1. */
  readonly number: number;
  readonly params: TrialParams;
}

/** Trials that survive each rung of successive halving: one in so many. */
export const HALVING_RATE = 3;

/**
 * Trials that differ in λ alone, from the largest λ to the smallest: each begins with the factors of the one
 * before. The others are chains of one. Chains are independent.
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

/** Iterations of a trial that begins with the factors of the λ before. */
export function warmIterations(maxIter: number): number {
  return Math.ceil(maxIter / 2);
}

/** One rung of successive halving: iterations of each trial in all, and the trials that go on to the next. */
export interface Rung {
  /** Share of the trial's own iterations. */
  readonly share: number;
  readonly survivors: number;
}

/**
 * The rungs for so many trials (Jamieson, Talwalkar 2016, Non-stochastic best arm identification and
 * hyperparameter optimization): a third of the trials goes on, with three times the iterations, and the last
 * rung has all of them. The first has one iteration or more.
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

/** Rounded, since the logarithm of 27 to the base 3 is just below 3. */
function logOf(value: number): number {
  return Number((Math.log(value) / Math.log(HALVING_RATE)).toFixed(9));
}
