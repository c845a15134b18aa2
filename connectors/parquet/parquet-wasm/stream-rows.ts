import { DataType } from 'apache-arrow';
import type { Field } from 'apache-arrow';
import { CapacityError } from '../../../engine/errors.ts';
import { formatBytes } from '../../../engine/format.ts';
import type { RowGroupInfo } from '../footer.ts';

/**
 * Approximate limit of a decoder's stream in bytes: it decodes all requested rows before it returns the
 * first.
 */
const STREAM = { numbers: 1 << 28, text: 3 << 25 } as const;
/** Approximate limit of a batch's text in bytes. */
const BATCH = 1 << 25;
/** Bytes of the decoder's memory, which may contain a text several times. */
const DECODER = 2 ** 32;
/** Encodings that store a text, or a part of it, once for many rows. */
const repeating = ['rle_dictionary', 'plain_dictionary', 'delta_byte_array'];

/**
 * Chooses the number of rows to request from the decoder, to limit its memory. A row group may have any
 * number of rows, and each row gets its own copy of a text that is stored once. Newer files contain the total
 * length of the text; for others the first stream is short if rows may be long.
 */
export class StreamRows {
  /** Estimated bytes of a row. */
  #perRow: number;
  /** Most bytes of text in one row. */
  readonly #longest: number;
  readonly #batchSize: number;
  readonly #hasText: boolean;
  /** Limit of rows after a stream was too large. */
  #most = Number.POSITIVE_INFINITY;

  /** `fields`: the columns that the decoder returns. `batchSize`: rows of a batch without text. */
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

  /** Number of rows of the next stream. */
  get limit(): number {
    return Math.max(
      1,
      Math.min(this.#most, Math.floor((this.#hasText ? STREAM.text : STREAM.numbers) / this.#perRow)),
    );
  }

  /** Number of rows of its batches. */
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

  /** Corrects the estimate of a row's bytes by the text of a stream that was decoded. */
  learn(bytes: number, rows: number): void {
    if (rows === 0 || !this.#hasText) return;
    this.#perRow = Math.max(1, bytes / rows);
    this.#most = Number.POSITIVE_INFINITY;
  }

  /**
   * Requests fewer rows after the decoder ran out of memory. False if it was one row, or if there is no text.
   */
  shrink(): boolean {
    if (!this.#hasText || this.limit === 1) return false;
    this.#most = Math.max(1, this.limit >> 6);
    return true;
  }

  /**
   * Error for a row whose text alone is too large; undefined if no text of the row group can be that long.
   */
  beyond(file: string, rowGroup: number): CapacityError | undefined {
    if (this.#longest < DECODER / 8) return undefined;
    return new CapacityError(
      `a row's text does not fit into the decoder's 4 GiB: the row group has texts of ${formatBytes(this.#longest)}`,
      { phase: 'read', file, rowGroup, advice: 'Write shorter ids' },
    );
  }
}
