import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { layoutOf, type SgdLayout } from './bytes.ts';
import { deviceOfBand, rowPartsOf } from './data-sets.ts';
import { sgdFeatures, type SgdParams } from './params.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

/** Facts besides the profile. */
export interface SgdPlanDetails {
  /** n_v of each item: makes the expected collisions exact. */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
  /** The model that is continued, as messages name it. */
  readonly start?: string;
  /** A schedule that was chosen before, in place of the choice. */
  readonly schedule?: SgdSchedule;
}

/** A run of SGD by one schedule, as all parts of its plan need it. */
export interface SgdProblem extends PlanDevices {
  readonly profile: RatingsProfile;
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly details: SgdPlanDetails;
  /** The first device that computes. */
  readonly device: DeviceInfo;
  /** Features of a row of factors. */
  readonly features: number;
  /** The ratings as an epoch steps them. */
  readonly layout: SgdLayout;
  /** The place of each part of the rows' factors, at which its tasks run. */
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
