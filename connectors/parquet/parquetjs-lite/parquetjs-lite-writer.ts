import { DataType, TimeUnit } from 'apache-arrow';
import type { RecordBatch, Schema } from 'apache-arrow';
import type { FileHandle } from 'node:fs/promises';
import parquetjs from 'parquetjs-lite';
import type { FieldDefinition, ParquetWriter } from 'parquetjs-lite';
import { DataError, FactorFlowError, UsageError } from '../../../engine/errors.ts';
import { plainRows } from '../../../engine/values/plain-values.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { appendAll, createFile } from '../../output/new-file.ts';
import type { ParquetFileWriter, WriteOptions, WrittenFile } from '../backend.ts';

const writableCodecs = { uncompressed: 'UNCOMPRESSED', snappy: 'SNAPPY', gzip: 'GZIP' } as const;
/** Smaller than usual, since the library keeps a row group as JavaScript values. */
const LARGEST_ROW_GROUP = 1 << 16;

/**
 * Creates the file (see ParquetBackend.create). Columns are flat; rows are written one by one, about 0.2
 * million a second.
 */
export async function createLiteWriter(
  file: string,
  schema: Schema,
  options: WriteOptions,
): Promise<ParquetFileWriter> {
  const fields = Object.fromEntries(
    schema.fields.map(({ name, type, nullable }) => [name, definition(name, type, nullable, options)]),
  );
  const sink = new HandleStream(await createFile(file));
  const settings = {
    rowGroupSize: Math.min(options.rowGroupSize, LARGEST_ROW_GROUP),
    useDataPageV2: false,
    pageIndex: false,
  };
  return new LiteFileWriter(
    file,
    sink,
    await parquetjs.ParquetWriter.openStream(new parquetjs.ParquetSchema(fields), sink, settings),
  );
}

function definition(name: string, type: DataType, optional: boolean, options: WriteOptions): FieldDefinition {
  const codec = options.codec;
  if (codec !== 'uncompressed' && codec !== 'snappy' && codec !== 'gzip') {
    throw new UsageError(`the backend parquetjs-lite cannot write codec ${codec}`, {
      phase: 'write',
      advice: `Use one of: ${Object.keys(writableCodecs).join(', ')}`,
    });
  }
  const stored = storedType(type);
  if (stored === undefined) {
    throw new UsageError(`the backend parquetjs-lite cannot write columns of ${String(type)}`, {
      phase: 'write',
      column: name,
      advice: 'Use the backend parquet-wasm',
    });
  }
  return { type: stored, optional, compression: writableCodecs[codec], statistics: false };
}

function storedType(type: DataType): string | undefined {
  if (DataType.isInt(type))
    return type.isSigned
      ? type.bitWidth === 32
        ? 'INT32'
        : type.bitWidth === 64
          ? 'INT64'
          : `INT_${type.bitWidth}`
      : type.bitWidth < 64
        ? `UINT_${type.bitWidth}`
        : undefined;
  if (DataType.isFloat(type))
    return type.precision === 1 ? 'FLOAT' : type.precision === 2 ? 'DOUBLE' : undefined;
  if (DataType.isTimestamp(type) && type.unit === TimeUnit.MILLISECOND && type.timezone === 'UTC')
    return 'TIMESTAMP_MILLIS';
  return DataType.isUtf8(type) ? 'UTF8' : DataType.isBool(type) ? 'BOOLEAN' : undefined;
}

class LiteFileWriter implements ParquetFileWriter {
  readonly #file: string;
  readonly #sink: HandleStream;
  readonly #writer: ParquetWriter;
  #rows = 0;

  constructor(file: string, sink: HandleStream, writer: ParquetWriter) {
    this.#file = file;
    this.#sink = sink;
    this.#writer = writer;
  }

  async write(batch: RecordBatch): Promise<void> {
    const rowAt = plainRows(batch.schema, batch.data.children);
    for (let row = 0; row < batch.numRows; row++) {
      const record = rowAt(row);
      for (const { name, type } of batch.schema.fields) {
        const value = record[name];
        if (typeof value === 'bigint') record[name] = this.#number(name, type, value);
      }
      try {
        await this.#writer.appendRow(record);
        if (this.#sink.failure !== undefined) throw this.#sink.failure;
      } catch (error) {
        throw this.#problem(error);
      }
      this.#rows++;
    }
  }

  async close(): Promise<WrittenFile> {
    try {
      await this.#writer.close();
      if (this.#sink.failure !== undefined) throw this.#sink.failure;
    } catch (error) {
      throw this.#problem(error);
    }
    return { rows: this.#rows, bytes: this.#sink.bytes };
  }

  async abort(): Promise<void> {
    await this.#sink.close();
  }

  /**
   * Converts a value for the library. It would silently round 64-bit integers beyond 2^53, so they are
   * refused.
   */
  #number(column: string, type: DataType, value: bigint): number {
    const wide = DataType.isInt(type) && type.bitWidth === 64;
    if (wide && (value > BigInt(Number.MAX_SAFE_INTEGER) || value < BigInt(Number.MIN_SAFE_INTEGER))) {
      throw new DataError(`the backend parquetjs-lite cannot write the integer ${value}, beyond 2^53`, {
        phase: 'write',
        file: this.#file,
        row: this.#rows,
        column,
        advice: 'Use the backend parquet-wasm',
      });
    }
    return Number(value);
  }

  #problem(error: unknown): Error {
    if (error instanceof FactorFlowError) return error;
    if (errorCode(error) !== undefined) return fileProblem(error, 'write', this.#file);
    return new DataError(`parquetjs-lite cannot write the row: ${messageOf(error)}`, {
      phase: 'write',
      file: this.#file,
      row: this.#rows,
      advice: 'Use the backend parquet-wasm',
    });
  }
}

/**
 * The methods of a Node stream that the library uses, over a file handle. The library does not await all
 * writes, so none of them rejects; the first failure is kept, and LiteFileWriter checks for it.
 */
class HandleStream {
  bytes = 0;
  failure: unknown;
  readonly #handle: FileHandle;
  #last: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  write(bytes: Uint8Array, done: () => void): void {
    this.bytes += bytes.length;
    this.#last = this.#last.then(() => this.#append(bytes)).then(done);
  }

  end(done: () => void): void {
    this.close().then(done, done);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#last;
    await this.#handle.close();
  }

  async #append(bytes: Uint8Array): Promise<void> {
    if (this.failure !== undefined) return;
    try {
      await appendAll(this.#handle, [bytes]);
    } catch (error) {
      this.failure = error;
    }
  }
}
