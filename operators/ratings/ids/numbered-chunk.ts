import type { KeysSummary } from '../../../engine/keys/number-keys.ts';
import type { PartitionRef } from '../../../engine/partition.ts';

export interface NumberedSide {
  readonly keys: PartitionRef;
  readonly summary: KeysSummary;
}

/**
 * A chunk of ratings whose users and items are numbered within the chunk (`codes`). `users` and `items` name
 * the partitions with the ids of these numbers.
 */
export interface NumberedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  readonly values: PartitionRef;
  readonly users: NumberedSide;
  readonly items: NumberedSide;
}

/** One chunk of rows: its own codes, and maps from these codes to positions among all sorted ids. */
export interface CodedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  /** `values` Float32[rows] and, if needed for duplicates, `timestamps` Float64[rows]. */
  readonly values: PartitionRef;
  /** Absent if the codes are positions already. */
  readonly userMap?: PartitionRef;
  readonly itemMap?: PartitionRef;
}
