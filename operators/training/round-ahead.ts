import type { JsonObject } from '../../engine/json.ts';
import { keptOf, type Versions } from '../../engine/plan/bound-plan.ts';
import { expand, type Expanded, type Round } from '../../engine/run/expand.ts';
import { contracts } from '../tasks/tasks.ts';
import type { Training } from './training.ts';

/** A round that was expanded ahead; undefined where the run took another course. */
export interface RoundAhead {
  of(from: Versions, params: JsonObject, kept: readonly Versions[]): Expanded | undefined;
}

export function expandRound(
  bound: Training<unknown>['bound'],
  from: Versions,
  round: Round,
  kept: readonly Versions[],
): Expanded {
  return expand(bound, contracts, 'round', from, round, kept);
}

/**
 * The round with this number, if the one before it, which makes `versions`, is kept and becomes the best.
 * `of` gives it where the run and the parameters are as expected.
 */
export function expandAhead<Factors>(
  training: Training<Factors>,
  versions: Versions,
  number: number,
): RoundAhead {
  const params = training.round(number);
  const expected = keptOf(training.keep, versions, versions);
  const expanded = expandRound(training.bound, versions, { number, params }, expected);
  const same = (kept: readonly Versions[]) =>
    kept.length === expected.length && kept.every((one, i) => one === expected[i]);
  return {
    of: (from, now, kept) =>
      from === versions && same(kept) && Object.keys(now).every((name) => now[name] === params[name])
        ? expanded
        : undefined,
  };
}
