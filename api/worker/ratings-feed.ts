import { DataType } from 'apache-arrow';
import type { RecordBatch, Schema } from 'apache-arrow';
import { IpcDecoder } from '../../connectors/arrow/ipc-decoder.ts';
import { FILE_MAGIC, type IpcMessage, messagesAt } from '../../connectors/arrow/ipc-messages.ts';
import type { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { DataError } from '../../engine/errors.ts';
import { formatCount } from '../../engine/format.ts';
import { setOrigin } from '../../engine/stream/stream.ts';

/** The name of the stream in messages. */
const FEED = 'the feed';

/** Most bytes of a line of JSON. */
const LONGEST_LINE = 1 << 20;

/**
 * Ratings that a parent process sends: an Arrow IPC stream with its end mark. If `trailer` is true, a line
 * {"rows":n} follows, which confirms that all ratings arrived.
 */
export class RatingsFeed {
  readonly schema: Schema;
  rows = 0;
  readonly #cursor: ByteCursor;
  readonly #messages: AsyncGenerator<IpcMessage>;
  readonly #decoder: IpcDecoder;

  private constructor(cursor: ByteCursor, messages: AsyncGenerator<IpcMessage>, decoder: IpcDecoder) {
    this.#cursor = cursor;
    this.#messages = messages;
    this.#decoder = decoder;
    this.schema = decoder.schema;
  }

  /** Reads the schema. Throws DataError. */
  static async open(cursor: ByteCursor): Promise<RatingsFeed> {
    const head = await cursor.peek(FILE_MAGIC.length);
    if (Buffer.from(head).toString('latin1') === FILE_MAGIC)
      throw new DataError('an Arrow file arrived instead of an Arrow stream', {
        phase: 'read',
        file: FEED,
        advice: 'Send the stream format',
      });
    const messages = messagesAt(cursor, FEED, true);
    const first = await messages.next();
    if (first.done) throw new DataError('the Arrow data have no schema', { phase: 'read', file: FEED });
    return new RatingsFeed(cursor, messages, new IpcDecoder(first.value, FEED, 0));
  }

  /** Throws DataError for damaged data and for a stream without its end mark. */
  async *batches(): AsyncGenerator<RecordBatch> {
    for await (const message of this.#messages) {
      for (const batch of this.#decoder.decode(message)) {
        if (batch.numRows === 0) continue;
        const firstRow = this.rows;
        this.rows += batch.numRows;
        yield setOrigin(batch, { file: FEED, firstRow });
      }
    }
  }

  /** The batches. Throws DataError at their end if the number of rows differs from `expected`. */
  async *batchesOf(expected: unknown): AsyncGenerator<RecordBatch> {
    yield* this.batches();
    if (typeof expected === 'number') this.#requireRows('the request', expected);
  }

  /**
   * The batches, then the trailer. Throws DataError if the number of rows differs from the trailer or from
   * `expected`.
   */
  async *batchesAndTrailer(expected: number | undefined): AsyncGenerator<RecordBatch> {
    yield* this.batches();
    const line = await this.#cursor.line(LONGEST_LINE);
    const rows = line && rowsOf(line);
    if (rows === undefined)
      throw new DataError('the trailer {"rows":n} is missing after the ratings', {
        phase: 'read',
        file: FEED,
        advice: 'Send them again',
      });
    this.#requireRows('the trailer', rows);
    this.#requireRows('the first line', expected ?? rows);
  }

  #requireRows(who: string, stated: number): void {
    if (stated === this.rows) return;
    throw new DataError(`${formatCount(this.rows)} ratings arrived, but ${who} says ${formatCount(stated)}`, {
      phase: 'read',
      file: FEED,
      advice: 'Send them again',
    });
  }
}

/** Throws DataError for text ids, which a parent's model cannot hold. */
export function requireWholeIds({ schema }: Pick<RatingsFeed, 'schema'>, columns: readonly string[]): void {
  for (const { name, type } of schema.fields) {
    if (columns.includes(name) && !(DataType.isInt(type) && type.isSigned))
      throw new DataError(`ids are ${String(type)}, need int32 or int64`, {
        phase: 'read',
        file: FEED,
        column: name,
      });
  }
}

function rowsOf(line: Uint8Array): number | undefined {
  try {
    const { rows } = JSON.parse(Buffer.from(line).toString('utf8')) as { readonly rows?: unknown };
    return typeof rows === 'number' && Number.isSafeInteger(rows) && rows >= 0 ? rows : undefined;
  } catch {
    return undefined;
  }
}
