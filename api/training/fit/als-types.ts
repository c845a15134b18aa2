import type { PlanDevices } from '../../../engine/run/devices.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import type { AlsChoices } from '../../../operators/als/kernel-choices.ts';
import type { AlsStart } from '../../../operators/als/bind/als-data.ts';
import type { SizedAlsParams } from '../../../operators/als/implicit/sized-params.ts';
import type { SortedFacts } from '../../../operators/evaluation/rating-facts.ts';
import type { SortedRatings } from '../../../operators/ratings/sort-ratings.ts';
import type { RatingsHome } from '../plans/ratings-home.ts';
import type { FitTypes, ReadRatings, SortedData } from './algorithm.ts';
import type { ValueWeight } from '../../../engine/numbers/value-weight.ts';
import type { RatingSides } from '../../../operators/ratings/ratings.ts';
import type { ReadyData } from './algorithm.ts';

export type AlsHome = RatingsHome & {
  /** The parameters, after `auto` values of α and λ were computed from the sizes. */
  readonly params: SizedAlsParams;
  readonly devices: PlanDevices;
  /** See placesBlocks in als-sort.ts. */
  readonly placesBlocks: boolean;
};

export interface AlsSorted extends SortedData {
  /** All ratings. */
  readonly read: SortedRatings;
  /** The ratings without implicit ratings that have no effect, such as 0. */
  readonly sides: RatingSides;
  readonly drawn: ScopeStage<AlsStart | undefined>;
  /** Blocks that were sent to a device as soon as they were sorted. */
  readonly placed: readonly ScopeStage<unknown>[];
}

export interface AlsTypes extends FitTypes {
  readonly read: ReadRatings;
  readonly home: AlsHome;
  readonly sorted: AlsSorted;
  readonly facts: SortedFacts;
  readonly ready: AlsReady;
  readonly choice: AlsChoices | undefined;
}

/** The data for training: ratings divided by their unit, or weights for implicit data. */
export interface AlsReady extends ReadyData {
  readonly sides: RatingSides;
  /** See ratingUnit. */
  readonly unit: number;
  /** For implicit data. */
  readonly weight: ValueWeight | undefined;
}
