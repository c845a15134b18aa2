import type { KeysSummary } from '../../../engine/keys/number-keys.ts';
import type { PartitionRef } from '../../../engine/partition.ts';

export interface NumberedSide {
  readonly keys: PartitionRef;
  readonly summary: KeysSummary;
}

/** A chunk whose ids are numbered by themselves, and the partitions with its ids. */
export interface NumberedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  readonly values: PartitionRef;
  readonly users: NumberedSide;
  readonly items: NumberedSide;
}

/** One chunk of rows: codes of its own, and the maps from those codes to positions among all sorted ids. */
export interface CodedChunk {
  readonly rows: number;
  readonly codes: PartitionRef;
  /** `values` Float32[rows] and, where duplicates need them, `timestamps` Float64[rows]. */
  readonly values: PartitionRef;
  /** Absent where the codes are positions already. */
  readonly userMap?: PartitionRef;
  readonly itemMap?: PartitionRef;
}
