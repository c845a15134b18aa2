import { DataType, type Field, Message, type RecordBatch, RecordBatchReader, Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { restoreNames } from '../../engine/stream/read-ipc.ts';
import { LEFT_OUT } from '../../engine/stream/stream.ts';
import { messageOf } from '../files/file-problem.ts';
import { plainBatches, plainSchema } from '../files/plain-columns.ts';
import { checkData } from './check-data.ts';
import { type IpcMessage, registerCodecs } from './ipc-messages.ts';
import { removeEntries, removeUnread, type StoredColumns } from './unread-columns.ts';

/** Bytes of a message before its metadata. */
const PREFIX = 8;

/** Decodes messages into batches. Dictionary columns become plain values, and every batch is checked. */
export class IpcDecoder {
  readonly schema: Schema;
  readonly #reader: RecordBatchReader;
  readonly #queue: Uint8Array[] = [];
  readonly #file: string;
  readonly #columns: StoredColumns | undefined;
  #batches: number;

  /** `firstBatch`: the number of the first batch. Throws DataError for a schema that cannot be read. */
  constructor(schema: IpcMessage, file: string, firstBatch: number) {
    this.#file = file;
    this.#batches = firstBatch;
    registerCodecs();
    try {
      this.#columns = schema.columns ?? removeUnread(schema.head.subarray(PREFIX), 2);
      this.#queue.push(schema.head, schema.body);
      this.#reader = RecordBatchReader.from(this.#pull());
      this.#reader.open();
      restoreNames(this.#reader.schema);
      requireWhole(this.#reader.schema.fields);
      const { fields } = plainSchema(this.#reader.schema);
      this.schema = new Schema(fields, leftOut(this.#columns));
    } catch (error) {
      throw new DataError(`the schema cannot be read: ${messageOf(error)}`, {
        phase: 'read',
        file,
        cause: error,
      });
    }
  }

  /** The rows of the next batch. Yields nothing for a dictionary; later batches use it. */
  decode({ kind, head, body }: IpcMessage): Iterable<RecordBatch> {
    if (kind === 'dictionary') {
      if (this.#uses(head)) this.#queue.push(head, body);
      return [];
    }
    const number = this.#batches++;
    const details = { phase: 'read', file: this.#file };
    let batch: RecordBatch | undefined;
    try {
      if (this.#columns) removeEntries(head.subarray(PREFIX), this.#columns);
      this.#queue.push(head, body);
      batch = (this.#reader.next() as IteratorResult<RecordBatch>).value as RecordBatch | undefined;
      if (batch === undefined) throw new Error('it ends early');
    } catch (error) {
      if (messageOf(error).includes('codec not found')) {
        throw new DataError(
          `batch ${number}: it is compressed by zstd, which needs Node 22.15 or newer, and this is ${process.versions.node}`,
          {
            ...details,
            advice: 'Update Node, or write the data with lz4 or without compression',
            cause: error,
          },
        );
      }
      throw new DataError(`batch ${number}: the data are damaged: ${messageOf(error)}`, {
        ...details,
        cause: error,
      });
    }
    for (const [index, child] of batch.data.children.entries()) {
      try {
        checkData(child, batch.numRows);
      } catch (error) {
        throw new DataError(`batch ${number}: the column cannot be read: ${messageOf(error)}`, {
          ...details,
          column: batch.schema.fields[index].name,
          cause: error,
        });
      }
    }
    return plainBatches(batch);
  }

  /** False for a dictionary of removed columns, whose type is unknown. */
  #uses(dictionary: Uint8Array): boolean {
    if (this.#columns === undefined) return true;
    const message = Message.decode(dictionary.subarray(PREFIX));
    return message.isDictionaryBatch() && this.#reader.schema.dictionaries.has(message.header().id);
  }

  /**
   * Passes the queued messages to apache-arrow's reader, which asks for one chunk in advance; empty chunks
   * make it wait. If it asks for more bytes than its batch has, the data are damaged, and the stream ends
   * after eight empty chunks.
   */
  *#pull(): Generator<Uint8Array> {
    for (let idle = 0; idle < 8;) {
      const next = this.#queue.shift();
      idle = next === undefined ? idle + 1 : 0;
      yield next ?? new Uint8Array(0);
    }
  }
}

function leftOut(columns: StoredColumns | undefined): Map<string, string> | undefined {
  if (columns === undefined) return undefined;
  const reason = 'since their types, run-end encoded or list views, are not read';
  return new Map([[LEFT_OUT, `${reason}: ${columns.removed.join(', ')}`]]);
}

/** Throws for a field without a name, or whose type lacks the fields that it consists of, at any depth. */
function requireWhole(fields: readonly (Field | undefined)[]): void {
  for (const field of fields) {
    if (field?.type === undefined) throw new Error('a nested column has no type');
    if (typeof field.name !== 'string') throw new Error('a column has no name');
    const { type } = field;
    requireWhole(DataType.isDictionary(type) ? (type.dictionary.children ?? []) : (type.children ?? []));
  }
}
