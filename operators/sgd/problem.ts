import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import type { RatingsProfile } from '../planner/profile.ts';
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

/** The layout into which ratings are brought before the steps, and its memory. */
interface SgdLayout {
  /** Name of the stage that makes the layout, before the steps or in the first epoch. */
  readonly name: string;
  readonly kernel: string;
  readonly where: 'host' | 'device';
  readonly tasks?: number;
  readonly bytes: number;
  /** Bytes of the largest buffer on a GPU. */
  readonly bufferBytes: number;
  readonly step: string;
}

/** The layout in which a schedule steps `nz` ratings of `rows` rows. */
function layoutOf(
  { kind, rowBands, columnBands, precision, deviceBlocks }: SgdSchedule,
  nz: number,
  rows: number,
): SgdLayout {
  const step = `sgd-block ${kind}`;
  const cut = {
    name: 'cut-blocks',
    kernel: 'place-columns',
    where: 'host',
    tasks: rowBands,
    bytes: 8 * nz + 4 * rows * columnBands,
  } as const;
  // With one band of columns, a block consists of whole rows of the sorted ratings, so it is a view and not a
  // copy.
  const blocks = columnBands === 1 ? ({ ...cut, where: 'device' } as const) : cut;
  if (deviceBlocks?.steps === 'tile')
    return { ...blocks, bufferBytes: (8 * nz) / (rowBands * columnBands), step: 'sgd-tiles' };
  if (deviceBlocks)
    return {
      ...cut,
      kernel: 'place-columns, shuffle-ratings',
      bytes: cut.bytes + 12 * nz,
      bufferBytes: (4 * nz) / (rowBands * columnBands),
      step,
    };
  if (kind === 'tile')
    return {
      name: 'deal-ratings',
      kernel: 'sgd-tile-count, sgd-tile-scatter',
      where: 'device',
      bytes: 8 * nz,
      bufferBytes: 8 * nz,
      step: 'sgd-tiles',
    };
  if (kind === 'hogwild')
    return {
      name: 'shuffle-ratings',
      kernel: 'deal-ratings, shuffle-ratings',
      where: 'host',
      bytes: 12 * nz,
      bufferBytes: 4 * nz,
      step,
    };
  if (precision !== undefined)
    return {
      name: 'sort-waves',
      kernel: 'sgd-wave-count, sgd-wave-scatter',
      where: 'device',
      bytes: 12 * nz,
      bufferBytes: 12 * nz,
      step: 'sgd-waves',
    };
  return { ...cut, bufferBytes: 0, step };
}
