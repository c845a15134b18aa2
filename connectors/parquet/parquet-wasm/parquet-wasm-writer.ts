import type { FileHandle } from 'node:fs/promises';
import type { RecordBatch, Schema } from 'apache-arrow';
import type { Compression, RecordBatch as WasmBatch, WriterProperties } from 'parquet-wasm/node';
import { DataError, FactorFlowError } from '../../../engine/errors.ts';
import { ipcBytes } from '../../arrow/ipc-bytes.ts';
import { emptyBatch } from '../../files/common-schema.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { appendBytes, createFile } from '../../output/new-file.ts';
import type { Codec, ParquetFileWriter, WriteOptions, WrittenFile } from '../backend.ts';
import { WasmInstance } from './wasm-instance.ts';
import type { ParquetWasm } from './wasm-instance.ts';

/** Parquet's numbers for the codecs; 'lz4' is the form every reader understands (LZ4_RAW). */
const compression = { uncompressed: 0, snappy: 1, gzip: 2, brotli: 3, zstd: 5, lz4: 6 } as const satisfies Record<Codec, Compression>;

/** Creates the file and starts an encoder (see ParquetBackend.create). */
export async function createWasmWriter(file: string, schema: Schema, options: WriteOptions): Promise<ParquetFileWriter> {
  return new WasmFileWriter(file, await createFile(file), schema, options);
}

/**
 * Hands batches to the encoder one at a time and its bytes to the file:
 *
 *     write(batch) -> input stream (one slot) -> encoder: one row group in memory -> output stream -> pump -> file
 */
class WasmFileWriter implements ParquetFileWriter {
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #schema: Schema;
  readonly #options: WriteOptions;
  readonly #instance = WasmInstance.take();
  readonly #input: ReadableStream<WasmBatch>;
  readonly #pump: Promise<void>;
  readonly #slot = new Slot<WasmBatch>();
  #rows = 0;
  #bytes = 0;
  #started = false;

  constructor(file: string, handle: FileHandle, schema: Schema, options: WriteOptions) {
    this.#file = file;
    this.#handle = handle;
    this.#schema = schema;
    this.#options = options;
    this.#input = new ReadableStream<WasmBatch>(
      {
        pull: async (controller) => {
          const batch = await this.#slot.take();
          if (batch === undefined) controller.close();
          else controller.enqueue(batch);
        },
      },
      { highWaterMark: 0 },
    );
    this.#pump = this.#run().catch((error: unknown) => {
      this.#slot.fail(this.#problem(error));
    });
  }

  async write(batch: RecordBatch): Promise<void> {
    if (batch.numRows === 0 && this.#started) return;
    this.#started = true;
    for (const part of this.#toWasm(batch)) await this.#slot.put(part);
    this.#rows += batch.numRows;
  }

  async close(): Promise<WrittenFile> {
    if (!this.#started) await this.write(emptyBatch(this.#schema));
    await this.#slot.put(undefined);
    await this.#pump;
    this.#slot.rethrow();
    this.#instance[Symbol.dispose]();
    await this.#handle.close();
    return { rows: this.#rows, bytes: this.#bytes };
  }

  async abort(): Promise<void> {
    this.#slot.fail(new Error('writing was aborted'));
    this.#instance.discard();
    await this.#handle.close();
  }

  async #run(): Promise<void> {
    const instance = this.#instance;
    const properties = writerProperties(instance.wasm, this.#options);
    const output: ReadableStream<Uint8Array> = await instance.guard(() => instance.wasm.transformParquetStream(this.#input, properties));
    const reader = output.getReader();
    for (;;) {
      const { done, value } = await instance.guard(() => reader.read());
      if (done) return;
      await appendBytes(this.#handle, value);
      this.#bytes += value.length;
    }
  }

  #toWasm(batch: RecordBatch): WasmBatch[] {
    const instance = this.#instance;
    try {
      const bytes = ipcBytes(batch);
      const table = instance.guardSync(() => instance.wasm.Table.fromIPCStream(bytes));
      const parts = instance.guardSync(() => table.recordBatches());
      instance.guardSync(() => table.free());
      return parts;
    } catch (error) {
      throw this.#problem(error);
    }
  }

  #problem(error: unknown): Error {
    if (error instanceof FactorFlowError) return error;
    if (errorCode(error) !== undefined) return fileProblem(error, 'write', this.#file);
    return new DataError(`the Parquet encoder refused the data: ${messageOf(error)}`, { phase: 'write', file: this.#file, cause: error });
  }
}

function writerProperties(wasm: ParquetWasm, options: WriteOptions): WriterProperties {
  return new wasm.WriterPropertiesBuilder()
    .setCompression(compression[options.codec])
    .setMaxRowGroupSize(options.rowGroupSize)
    .setDictionaryEnabled(options.dictionary ?? true)
    .build();
}

/** Passes values from one side to the other, one at a time: `put` resolves when its value has been taken. */
class Slot<T> {
  #value: { readonly item: T | undefined; readonly taken: () => void } | undefined;
  #waiting: ((item: T | undefined) => void) | undefined;
  #failure: Error | undefined;
  #rejectPut: ((error: Error) => void) | undefined;

  async put(item: T | undefined): Promise<void> {
    this.rethrow();
    if (this.#waiting !== undefined) {
      this.#waiting(item);
      this.#waiting = undefined;
      return;
    }
    await new Promise<void>((taken, reject) => {
      this.#rejectPut = reject;
      this.#value = { item, taken };
    });
  }

  async take(): Promise<T | undefined> {
    if (this.#value !== undefined) {
      const { item, taken } = this.#value;
      this.#value = undefined;
      taken();
      return item;
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  fail(error: Error): void {
    this.#failure ??= error;
    this.#rejectPut?.(this.#failure);
  }

  rethrow(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}
