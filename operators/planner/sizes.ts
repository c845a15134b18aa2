import { CapacityError } from '../../engine/errors.ts';
import { counted, formatBytes } from '../../engine/format.ts';
import { type BoundPlan, partBytes } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';

/**
 * Facts about the ratings from which a plan is made. If a plan is made from sizes alone, before any data are
 * read, the longest rows and the largest rating are not known.
 */
export interface RatingsProfile {
  /** m */
  readonly users: number;
  /** n */
  readonly items: number;
  /** Nz */
  readonly ratings: number;
  readonly longestUser?: number;
  readonly longestItem?: number;
  readonly largestRating?: number;
  /** Number of pairs in the validation set, if there is one. */
  readonly testRatings?: number;
  /** The sides whose rows have attributes. */
  readonly attributes?: Readonly<Partial<Record<'users' | 'items', AttributeSizes>>> | undefined;
  /**
   * The source and the operators from which ratings are read, printed as the plan's first stage:
   * "parquet(ratings/) -> select-ratings".
   */
  readonly input?: string;
}

/** Sizes of the attributes of a side: see AttributeMatrix. `entries`: the features of all rows that are not 0. */
export interface AttributeSizes {
  readonly features: number;
  readonly entries: number;
}

/** The sizes of a plan: see PhysicalPlan. Absent sizes are left out. */
export function planSizes({ users, items, ratings, testRatings, attributes = {} }: RatingsProfile) {
  const { users: ofUsers, items: ofItems } = attributes;
  return {
    users,
    items,
    ratings,
    ...(testRatings === undefined ? {} : { testRatings }),
    ...(ofUsers && { userFeatures: ofUsers.features, userEntries: ofUsers.entries }),
    ...(ofItems && { itemFeatures: ofItems.features, itemEntries: ofItems.entries }),
  };
}

/** The profile that a plan's sizes describe. */
export function profileOfSizes(sizes: Readonly<Record<string, number>>): RatingsProfile {
  const { users, items, ratings, testRatings } = sizes;
  const of = (side: string): AttributeSizes | undefined =>
    sizes[`${side}Features`] === undefined
      ? undefined
      : { features: sizes[`${side}Features`], entries: sizes[`${side}Entries`] };
  const attributes = { users: of('user'), items: of('item') };
  return {
    users,
    items,
    ratings,
    ...(testRatings === undefined ? {} : { testRatings }),
    ...((attributes.users ?? attributes.items) && { attributes }),
  };
}

/**
 * Row stride of a factor matrix in elements: f rounded up to a multiple of `step`, the number of elements
 * with which the device computes at once.
 */
export function factorStride(rank: number, step = 8): number {
  return Math.ceil(rank / step) * step;
}

export function factorBytes(rows: number, rank: number, step = 8): number {
  return rows * factorStride(rank, step) * 4;
}

/**
 * Most ratings of one block. Its row offsets are int32, and no GPU can access a larger buffer. Tests lower
 * this limit.
 */
export const blockLimit = { ratings: 2 ** 30 - 1 };

/** Host bytes of a block R(ij) of ratings: row offsets, column indices, values. */
export function blockBytes(rows: number, ratings: number): number {
  return 4 * (rows + 1) + 8 * ratings;
}

/**
 * Peak bytes of host memory while ratings are loaded and sorted in memory: chunks of ratings with ids as
 * numbers (12 bytes a rating), and the block of ratings sorted by user (8). The block sorted by item is made
 * while the chunks are freed. `timed`: in addition timestamps (8), and ratings and timestamps by row number
 * (12).
 */
export function loadingBytes(ratings: number, timed = false): number {
  return (timed ? 40 : 20) * ratings;
}

/**
 * Peak bytes of host memory if the chunks are in files: both blocks of sorted ratings (8 bytes a rating
 * each).
 */
export function spilledLoadingBytes(ratings: number): number {
  return 16 * ratings;
}

/**
 * Peak bytes of host memory if sorted ratings are written to files, in parts of `ratings`: one part, the
 * chunks from which it is sorted, and freed memory that is not collected yet.
 */
export function partLoadingBytes(ratings: number): number {
  return 32 * ratings;
}

/**
 * Peak bytes of files in the spill folder: chunks of ratings with ids as numbers (12 bytes a rating), the
 * same ratings divided by part (12), which later replace the chunks, and the parts sorted by user (8).
 */
export function spilledBytes(ratings: number): number {
  return 32 * ratings;
}

/**
 * Throws CapacityError, with the needed and the available bytes, if the plan does not fit into a device.
 * `advice`: a further remedy, for devices with their own memory.
 */
export function requireDeviceFit(
  { memory, devices }: Pick<PhysicalPlan, 'memory' | 'devices'>,
  advice: string,
): void {
  for (const { place, capacityBytes, ownMemory } of devices) {
    const bytes = memory[place] ?? 0;
    if (capacityBytes === null || bytes <= capacityBytes) continue;
    throw new CapacityError(
      `the factors${ownMemory ? ' and ratings' : ''} need ${formatBytes(bytes)} (${bytes} bytes) but device ${place} has ${formatBytes(capacityBytes)} (${capacityBytes} bytes)`,
      {
        phase: 'plan',
        advice: ownMemory
          ? `Give it more memory, use device cpu, a smaller rank, or ${advice}`
          : 'Use a smaller rank, or fewer users and items',
      },
    );
  }
}

/** True if the plan fits all its devices. */
export function fits({ memory, devices }: Pick<PhysicalPlan, 'memory' | 'devices'>): boolean {
  return devices.every(
    ({ place, capacityBytes }) => capacityBytes === null || (memory[place] ?? 0) <= capacityBytes,
  );
}

/** Names in error messages for matrices that are not factors, by the role of the data set. */
const named: Readonly<Record<string, string>> = { equations: 'normal equations', gradients: 'gradients' };

/**
 * Buffers that are larger than their device allows (`bindingBytes`), each with a description of its contents.
 * `more`: bytes of further buffers by description.
 */
export function buffersBeyondBinding(
  plan: Pick<PhysicalPlan, 'datasets'> & Pick<BoundPlan, 'devices'>,
  more: Readonly<Record<string, number>> = {},
): { readonly device: DeviceInfo; readonly what: string; readonly bytes: number }[] {
  return plan.devices.flatMap((device) => {
    const { bindingBytes, place } = device;
    if (bindingBytes === undefined) return [];
    const matrices = plan.datasets.flatMap((set) =>
      set.columns === undefined || set.layout !== 'factors'
        ? []
        : set.parts.flatMap(({ at, rows }, partition) =>
            at.includes(place)
              ? [
                  [
                    `the ${named[set.role ?? ''] ?? 'factors'} of ${counted(rows, 'row')}`,
                    partBytes(plan, { ...set, half: set.half === 'only' ? 'only' : false }, partition, place),
                  ] as const,
                ]
              : [],
          ),
    );
    return [...matrices, ...Object.entries(more)].flatMap(([what, bytes]) =>
      bytes > bindingBytes ? [{ device, what, bytes }] : [],
    );
  });
}

/**
 * Throws CapacityError, with the needed and the allowed bytes, if a buffer is larger than its device allows.
 */
export function requireBindings(
  plan: Pick<PhysicalPlan, 'datasets'> & Pick<BoundPlan, 'devices'>,
  more: Readonly<Record<string, number>>,
): void {
  const [first] = buffersBeyondBinding(plan, more);
  if (first === undefined) return;
  const { device, what, bytes } = first;
  throw new CapacityError(
    `${what} need ${formatBytes(bytes)} (${bytes} bytes) in one buffer but device ${device.place} binds at most ${formatBytes(device.bindingBytes ?? 0)} (${device.bindingBytes} bytes)`,
    {
      phase: 'plan',
      advice: /^the (normal equations|gradients)/.test(what)
        ? 'Cut that side into more parts, use device cpu, or a smaller rank'
        : 'Use device cpu, a smaller rank, or a part of the ratings',
    },
  );
}
