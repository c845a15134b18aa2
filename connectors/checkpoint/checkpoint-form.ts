import type { JsonObject } from '../../engine/json.ts';

/**
 * A checkpoint is a folder of plain files:
 *
 *     checkpoint.json              the state of the run, and the length of each matrix
 *     <matrix>-00000.f32, ...      a matrix, row-major: float32, little-endian, without a header, in parts of 128 MiB
 *     SHA256SUMS                   of all others, as `sha256sum --check` reads it
 */
export const STATE = 'checkpoint.json';
export const SUMS = 'SHA256SUMS';
const PART_FLOATS = 1 << 25;

/** Bytes are hashed and written in pieces of this size, so that the thread can do other work in between. */
export const PIECE_BYTES = 1 << 22;

export const FORMAT = 2;

export interface StoredState extends JsonObject {
  readonly format: number;
  readonly iteration: number;
  /** Length of each matrix. */
  readonly matrices: Readonly<Record<string, number>>;
}

/** True for the relative path of a file that belongs to a checkpoint. */
export function isCheckpointEntry(path: string): boolean {
  return path === STATE || path === SUMS || /^[a-z-]{1,60}-\d{5}\.f32$/.test(path);
}

/** The part files of a matrix, and the positions of their numbers. */
export function partsOf(
  name: string,
  length: number,
): { readonly part: string; readonly from: number; readonly to: number }[] {
  return Array.from({ length: Math.max(1, Math.ceil(length / PART_FLOATS)) }, (_, part) => ({
    part: `${name}-${String(part).padStart(5, '0')}.f32`,
    from: part * PART_FLOATS,
    to: Math.min(length, (part + 1) * PART_FLOATS),
  }));
}

export function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
