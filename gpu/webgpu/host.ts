import type { FileMemory } from '../../engine/partition.ts';

/** Bytes of a piece of an exchange, the unit that one thread copies. */
export const PIECE_BYTES = 2 << 20;

/** Host memory for values that arrive later. */
export interface AwaitedValues {
  readonly values: Float32Array;
  /** Resolves when values [from, to) may be written. */
  ready(from: number, to: number): Promise<void>;
}

/** Copies pieces of data to and from memory files, through which the GPUs of a process exchange data. */
export interface PieceCopies {
  /** `at`: index of the piece's first byte in all the data. */
  write(memory: FileMemory, piece: Uint8Array, at: number): Promise<void>;
  /** See write. */
  read(memory: FileMemory, piece: Uint8Array, at: number): Promise<void>;
  /** Resolves when no copy is in progress. */
  ended(): Promise<void>;
}

/** The services of the program around a GPU, which differ between Node and a page. */
export interface GpuHost {
  readonly pieces: PieceCopies;
  awaitedValues(length: number): AwaitedValues;
  /** Collects this thread's garbage now, if the program can. */
  collectGarbage(): void;
}
