import { expect } from 'vitest';
import { type Partition, type PartitionRef } from '../../../../engine/partition.ts';
import type { Device } from '../../../../engine/run/device.ts';
import { relativeDistance } from '../../../cpu/scope.ts';
import { DeviceParts } from '../../../support/devices/device-parts.ts';
import { paddingOf } from '../../../support/devices/padding.ts';

/** Columns of ratings, and rows of the fixed side. */
export const COLUMNS = 500;

/** A task, or one of its ways to compute, that is compared with its float64 version at many ranks. */
export interface RankCase {
  readonly name: string;
  /** True for a way that only a CPU has. */
  readonly onlyCpu?: boolean;
  /** True if the case takes only each fifth of its ranks, since it takes long. */
  readonly slow?: boolean;
  check(tasks: DeviceTasks, rank: number): Promise<void>;
}

/** One device, and what the checks have in common. */
export class DeviceTasks {
  readonly device: Device;
  readonly parts: DeviceParts;

  constructor(device: Device) {
    [this.device, this.parts] = [device, new DeviceParts(device)];
  }

  /** Elements between rows of a CPU's matrices. */
  static stride = (rank: number) => Math.ceil(rank / 8) * 8;

  /** Fetches a matrix, and requires that its padding is 0. */
  async fetched(ref: PartitionRef, columns: number): Promise<Float32Array> {
    expect(await paddingOf(this.device, ref, columns), `padding of ${ref.name}`).toEqual([]);
    return this.parts.fetched(ref);
  }
}

export const valuesOf = ({ columns }: Partition) => columns.values as Float32Array;

/** Requires that numbers are within `limit` of the expected ones, relative to their length. */
export function requireNear(
  found: ArrayLike<number>,
  expected: ArrayLike<number>,
  limit: number,
  name: string,
): void {
  expect(relativeDistance(found, expected), name).toBeLessThan(limit);
}
