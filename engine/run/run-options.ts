import type { Partition, PartitionRef } from '../partition.ts';
import type { Place } from '../plan/place.ts';

/** A partition that exists before the steps, in host memory or at the given place. */
export type Given = readonly [ref: PartitionRef, partition: Partition, at?: Place];

export interface RunStepsOptions {
  readonly given?: readonly Given[];
  /** Called with the number of ended slices and the number of all slices, over all tasks. */
  readonly onProgress?: (finished: number, of: number) => void;
  /** True to add the end time of each device's last kernel, by the device's clock. Default: false. */
  readonly clocked?: boolean;
}
