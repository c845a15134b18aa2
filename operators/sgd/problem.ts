import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { layoutOf, type SgdLayout } from './bytes.ts';
import { deviceOfBand, rowPartsOf } from './data-sets.ts';
import { sgdFeatures, type SgdParams } from './params.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

/** Details of a plan in addition to the sizes in the profile. */
export interface SgdPlanDetails {
  /**
   * Number of ratings of each item and of each user. If known, the expected number of collisions is exact.
   */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
  /** Name, for messages, of the model from which training continues. */
  readonly start?: string;
  /** A schedule that was chosen before; no choice is made then. */
  readonly schedule?: SgdSchedule;
}

/** A run of SGD by one schedule: the input of all functions that make parts of its plan. */
export interface SgdProblem extends PlanDevices {
  readonly profile: RatingsProfile;
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly details: SgdPlanDetails;
  /** First device that computes. */
  readonly device: DeviceInfo;
  /** Number of features in a row of factors. */
  readonly features: number;
  /** Layout of the ratings for the steps of an epoch. */
  readonly layout: SgdLayout;
  /** For each part of the rows' factors, the device that runs its tasks. */
  readonly rowPlaces: readonly Place[];
}

export function sgdProblem(
  given: Pick<SgdProblem, 'profile' | 'params' | 'schedule' | 'details' | 'compute' | 'host'>,
): SgdProblem {
  const { profile, params, schedule, compute } = given;
  const bands = Array.from({ length: rowPartsOf(schedule) }, (_, band) => deviceOfBand(schedule, band));
  return {
    ...given,
    device: compute[0],
    features: sgdFeatures(params),
    layout: layoutOf(schedule, profile.ratings, Math.max(profile.users, profile.items)),
    rowPlaces: bands.map((device) => compute[device].place),
  };
}
