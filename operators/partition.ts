import { CapacityError } from '../engine/errors.ts';
import type { DevicePlan } from '../engine/physical-plan.ts';
import { formatBytes } from '../engine/format.ts';

/** Ratings that one block may hold: its row pointers are int32. */
export const MAXIMUM_BLOCK_RATINGS = 2 ** 31 - 1;

/** Row stride of a factor matrix in elements: f padded to what the device computes with at once. */
export function factorStride(rank: number, step = 8): number {
  return Math.ceil(rank / step) * step;
}

export function factorBytes(rows: number, rank: number, step = 8): number {
  return rows * factorStride(rank, step) * 4;
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
export function alsDeviceBytes(users: number, items: number, rank: number, keepBest: boolean, step = 8): number {
  const both = factorBytes(users, rank, step) + factorBytes(items, rank, step);
  return both + factorBytes(Math.max(users, items), rank, step) + (keepBest ? both : 0);
}

/** Throws CapacityError with both figures when the factors, and on a GPU the ratings, do not fit the device. `advice`: for a GPU. */
export function requireDeviceFit(bytes: number, { name, kind, capacityBytes }: DevicePlan, advice: string): void {
  if (capacityBytes === null || bytes <= capacityBytes) return;
  throw new CapacityError(
    `the factors${kind === 'gpu' ? ' and ratings' : ''} need ${formatBytes(bytes)} (${bytes} bytes) but device ${name} has ${formatBytes(capacityBytes)} (${capacityBytes} bytes)`,
    { phase: 'plan', advice: kind === 'gpu' ? `Give it more memory, use device cpu, a smaller rank, or ${advice}` : 'Use a smaller rank, or fewer users and items' },
  );
}

/** Throws CapacityError with both figures when one of the buffers is larger than the device binds. */
export function requireBindings(buffers: Readonly<Record<string, number>>, { name, bindingBytes = Number.POSITIVE_INFINITY }: DevicePlan): void {
  for (const [what, bytes] of Object.entries(buffers)) {
    if (bytes <= bindingBytes) continue;
    throw new CapacityError(`${what} need ${formatBytes(bytes)} (${bytes} bytes) in one buffer but device ${name} binds at most ${formatBytes(bindingBytes)} (${bindingBytes} bytes)`, {
      phase: 'plan',
      advice: 'Use device cpu, a smaller rank, or a part of the ratings',
    });
  }
}
