import { closeSync, openSync, read } from 'node:fs';
import { sharedArray } from '../../engine/partition.ts';

/** Bytes that one thread pre-faults at a time. */
const PIECE_BYTES = 4 << 20;

/** Below this size pre-faulting gains less than the calls cost. */
const LEAST_BYTES = 4 * PIECE_BYTES;

/**
 * New shared memory for values that will arrive later. The system maps a page when it is first written,
 * which takes longer than the copy itself. So where /dev/zero exists (Linux, macOS), pool threads read zeros
 * into the memory while the values are awaited: this maps the pages.
 */
export class FreshMemory {
  readonly values: Float32Array;
  readonly #touched: readonly Promise<void>[];

  constructor(length: number) {
    this.values = sharedArray(Float32Array, length);
    this.#touched = this.values.byteLength < LEAST_BYTES ? [] : touched(this.values);
  }

  /**
   * Resolves when values [from, to) may be written, that is, when the pool threads write no more zeros
   * there.
   */
  async ready(from: number, to: number): Promise<void> {
    const { BYTES_PER_ELEMENT } = this.values;
    await Promise.all(
      this.#touched.slice(
        Math.floor((from * BYTES_PER_ELEMENT) / PIECE_BYTES),
        Math.ceil((to * BYTES_PER_ELEMENT) / PIECE_BYTES),
      ),
    );
  }
}

/**
 * Reads zeros into the memory, so that its pages are mapped. Returns a promise for each piece of PIECE_BYTES,
 * which never rejects: a page that could not be mapped here is mapped when its first value is written.
 */
function touched({ buffer, byteOffset, byteLength }: Float32Array): Promise<void>[] {
  let file: number;
  try {
    file = openSync('/dev/zero', 'r');
  } catch {
    return [];
  }
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  const pieces = Array.from({ length: Math.ceil(byteLength / PIECE_BYTES) }, (_, piece) => {
    const at = piece * PIECE_BYTES;
    return new Promise<void>((resolve) =>
      read(file, bytes, at, Math.min(PIECE_BYTES, byteLength - at), null, () => resolve()),
    );
  });
  void Promise.all(pieces).then(() => closeSync(file));
  return pieces;
}
