import { closeSync, openSync, read } from 'node:fs';
import { sharedArray } from '../../engine/partition.ts';

/** Bytes that one thread touches at a time. */
const PIECE_BYTES = 4 << 20;

/** Touching less gains nothing worth the calls. */
const LEAST_BYTES = 4 * PIECE_BYTES;

/**
 * New shared memory for values that are on their way. The system gives each page when it is first written,
 * which takes longer than the copy; where it has a file of zeros (Linux, macOS), its threads read that into
 * the memory while the values are still awaited.
 *
 */
export class FreshMemory {
  readonly values: Float32Array;
  readonly #touched: readonly Promise<void>[];

  constructor(length: number) {
    this.values = sharedArray(Float32Array, length);
    this.#touched = this.values.byteLength < LEAST_BYTES ? [] : touched(this.values);
  }

  /** Resolves when the values from `from` to before `to` may be written: no zeros come behind them. */
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
 * For each piece a promise that never fails: a page that is not touched here is touched by its first value.
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
