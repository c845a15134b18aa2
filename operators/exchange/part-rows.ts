import { DataType, makeData, RecordBatch, type Schema, Struct } from 'apache-arrow';
import { wordsOfType } from '../../engine/keys/row-words.ts';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { joinData } from '../../engine/stream/join-data.ts';

/** Most rows and bytes of small pieces that are joined into one batch. */
const BATCH_ROWS = 1 << 15;
const BATCH_BYTES = 1 << 22;

/**
 * Collects the rows of one part of an exchange as an Arrow stream. Each input batch contributes a small piece
 * to each part. Pieces are joined to larger batches, since batches of few rows cost more to write and read
 * than their rows.
 */
export class PartRows {
  readonly #schema: Schema;
  readonly #stream: RowStream;
  readonly #isJoined: boolean;
  #pieces: RecordBatch[] = [];
  #rows = 0;
  #bytes = 0;

  constructor(schema: Schema) {
    this.#schema = schema;
    this.#stream = new RowStream(schema, false);
    this.#isJoined = schema.fields.every(({ type }) => isPlain(type));
  }

  add(piece: RecordBatch): void {
    if (!this.#isJoined) {
      this.#stream.add(piece);
      return;
    }
    this.#pieces.push(piece);
    this.#rows += piece.numRows;
    this.#bytes += piece.data.byteLength;
    if (this.#rows >= BATCH_ROWS || this.#bytes >= BATCH_BYTES) this.#write();
  }

  /** Ends the rows. Returns the number of bytes. */
  finish(): number {
    if (this.#pieces.length > 0) this.#write();
    return this.#stream.finish();
  }

  get rows(): number {
    return this.#stream.rows;
  }

  /** Bytes of finished rows. */
  get length(): number {
    return this.#stream.length;
  }

  takeInto(all: Uint8Array, at: number): void {
    this.#stream.takeInto(all, at);
  }

  #write(): void {
    const [pieces, length] = [this.#pieces, this.#rows];
    [this.#pieces, this.#rows, this.#bytes] = [[], 0, 0];
    if (pieces.length === 1) {
      this.#stream.add(pieces[0]);
      return;
    }
    const { fields } = this.#schema;
    const children = fields.map(({ type }, i) =>
      joinData(
        type,
        pieces.map(({ data }) => data.children[i]),
      ),
    );
    const data = makeData({ type: new Struct(fields), length, nullCount: 0, children });
    this.#stream.add(new RecordBatch(this.#schema, data));
  }
}

/** True for text and for values of fixed width. */
function isPlain(type: DataType): boolean {
  return DataType.isUtf8(type) || wordsOfType(type) > 0;
}
