import type { KeysSummary } from '../../../engine/keys/number-keys.ts';
import type { PartitionRef } from '../../../engine/partition.ts';

export interface NumberedSide {
  readonly keys: PartitionRef;
  readonly summary: KeysSummary;
}

/** A chunk whose ids are numbered within the chunk, with the partitions that contain its ids. */
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
