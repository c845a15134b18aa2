import { CapacityError } from '../engine/errors.ts';
import type { DevicePlan } from '../engine/physical-plan.ts';
import { formatBytes } from '../engine/format.ts';

/** Ratings that one block may hold: its row pointers are int32. */
export const MAXIMUM_BLOCK_RATINGS = 2 ** 31 - 1;

/** Row stride of a factor matrix in elements: f padded to whole 256-bit groups. */
export function factorStride(rank: number): number {
  return Math.ceil(rank / 8) * 8;
}

export function factorBytes(rows: number, rank: number): number {
  return rows * factorStride(rank) * 4;
}

/** Host bytes of a block R(ij): row pointers, column indices, values. */
export function blockBytes(rows: number, ratings: number): number {
  return 4 * (rows + 1) + 8 * ratings;
}

/**
 * Peak host bytes while ratings are loaded and sorted: coded chunks (12 a rating) beside row numbers (4) and the first
 * block (8); then the chunks go, and the second block comes.
 */
export function loadingBytes(ratings: number): number {
  return 24 * ratings;
}

/**
 * Device bytes of one device for ALS, the left side of cuMF's eq. 8 with p = q = 1 for a kernel that solves each row in
 * place: A never leaves the scratch, so the (m/q) f² and (m/q) f terms vanish; the new version of a side stands beside
 * the old one (a task never writes its inputs), and an early stop keeps the best version of both.
 */
export function alsDeviceBytes(users: number, items: number, rank: number, keepBest: boolean): number {
  const both = factorBytes(users, rank) + factorBytes(items, rank);
  return both + factorBytes(Math.max(users, items), rank) + (keepBest ? both : 0);
}

/** Throws CapacityError with both figures when the factors do not fit the device. */
export function requireDeviceFit(bytes: number, device: DevicePlan): void {
  if (bytes <= device.capacityBytes) return;
  throw new CapacityError(
    `the factors need ${formatBytes(bytes)} (${bytes} bytes) but device ${device.name} has ${formatBytes(device.capacityBytes)} (${device.capacityBytes} bytes)`,
    { phase: 'plan', advice: 'Use a smaller rank, or fewer users and items' },
  );
}
