import { DataType } from 'apache-arrow';
import type { Field } from 'apache-arrow';
import { CapacityError } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { RowGroupInfo } from '../footer.ts';

/**
 * Bytes that a stream of the decoder should have at most: it decodes all rows that it is asked for before it
 * gives the first.
 */
const STREAM = { numbers: 1 << 28, text: 3 << 25 } as const;
/** Bytes of text that a batch should have at most. */
const BATCH = 1 << 25;
/** Memory of the decoder, which may hold a text several times. */
const DECODER = 2 ** 32;
/** Encodings that store a text, or a part of it, once for many rows. */
const repeating = ['rle_dictionary', 'plain_dictionary', 'delta_byte_array'];

/**
 * The number of rows that the decoder is asked for at a time, so that its memory stays within bounds: a row
 * group may have any number of rows, and each row gets its own copy of a text that is stored once. Newer
 * files say how long the text is in all; elsewhere a stream is short at first where its rows could be long.
 *
 */
export class StreamRows {
  /** Bytes of a row, about. */
  #perRow: number;
  /** Bytes that the text of one row may have. */
  readonly #longest: number;
  readonly #batchSize: number;
  readonly #hasText: boolean;
  /** Rows after a stream was too much. */
  #most = Number.POSITIVE_INFINITY;

  /**
   * `fields`: the columns that the decoder gives. `batchSize`: rows of a batch without text.
   */
  constructor({ columns, rows }: RowGroupInfo, fields: readonly Field[], batchSize: number) {
    const text = fields
      .filter(({ type }) => DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isUtf8View(type))
      .map(({ name }) => name);
    const chunks = columns.filter(({ column }) => text.includes(column));
    this.#batchSize = batchSize;
    this.#hasText = text.length > 0;
    this.#longest = chunks.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
    const known = chunks.reduce((sum, { textBytes, unpackedBytes }) => sum + (textBytes ?? unpackedBytes), 0);
    this.#perRow = 8 * fields.length + known / Math.max(1, rows);
    const unknown = chunks.filter(
      ({ textBytes, encodings }) =>
        textBytes === undefined && encodings.some((encoding) => repeating.includes(encoding)),
    );
    const longest = unknown.reduce((sum, { unpackedBytes }) => sum + unpackedBytes, 0);
    if (longest * rows > BATCH) this.#most = Math.max(1, Math.floor(BATCH / longest));
  }

  /** Rows of the next stream. */
  get limit(): number {
    return Math.max(
      1,
      Math.min(this.#most, Math.floor((this.#hasText ? STREAM.text : STREAM.numbers) / this.#perRow)),
    );
  }

  /** Rows of its batches. */
  get batch(): number {
    return Math.max(
      1,
      Math.min(
        this.limit,
        this.#batchSize,
        this.#hasText ? Math.floor(BATCH / this.#perRow) : this.#batchSize,
      ),
    );
  }

  /** Learns from the text of a stream. */
  learn(bytes: number, rows: number): void {
    if (rows === 0 || !this.#hasText) return;
    this.#perRow = Math.max(1, bytes / rows);
    this.#most = Number.POSITIVE_INFINITY;
  }

  /**
   * Asks for fewer rows after the decoder's memory was too small. False where it was one row, or there is no
   * text.
   */
  shrink(): boolean {
    if (!this.#hasText || this.limit === 1) return false;
    this.#most = Math.max(1, this.limit >> 6);
    return true;
  }

  /**
   * The error for a row whose text alone is too much; undefined where no text of the row group is that long.
   */
  beyond(file: string, rowGroup: number): CapacityError | undefined {
    if (this.#longest < DECODER / 8) return undefined;
    return new CapacityError(
      `a row's text does not fit into the decoder's 4 GiB: the row group has texts of ${formatBytes(this.#longest)}`,
      { phase: 'read', file, rowGroup, advice: 'Write shorter ids' },
    );
  }
}
