import type { RecordBatch } from 'apache-arrow';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { atomicOutput, checkOutput } from '../output/atomic-output.ts';
import type { AtomicOutputOptions } from '../output/atomic-output.ts';
import type { CheckedSink, WriteSummary, WritingContext } from '../output/checked-sink.ts';
import { RowEncoder } from '../output/row-encoder.ts';
import { writeBatches } from '../output/write-batches.ts';
import type { BatchOutput } from '../output/write-batches.ts';
import { codecs } from './backend.ts';
import type { Codec, ParquetBackendName, ParquetFileWriter, WrittenFile } from './backend.ts';
import { parquetBackend } from './backends.ts';
import { isDatasetEntry, partName } from './part-names.ts';

export interface ParquetSinkOptions {
  readonly codec?: Codec;
  /** Rows of a row group. Default 1,048,576. */
  readonly rowGroupSize?: number;
  /** Rows of a part file in a folder. Default 16,777,216. */
  readonly rowsPerPart?: number;
  /** Replaces an existing output of this kind. */
  readonly overwrite?: boolean;
  /** False for columns whose values seldom repeat. Default true. */
  readonly dictionary?: boolean;
  readonly backend?: ParquetBackendName;
}

/**
 * Writes a stream as Parquet: a folder of part-00000.parquet, part-00001.parquet, …, or one file when the
 * path ends in ".parquet". The output appears once it is complete; a failure or a cancellation leaves
 * nothing. Memory holds one row group. A stream without rows gives one part with the columns and no rows.
 *
 */
export class ParquetSink implements CheckedSink {
  readonly name = 'parquet-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #options: ParquetSinkOptions;

  constructor(path: string, options: ParquetSinkOptions = {}) {
    const { codec, rowGroupSize, rowsPerPart } = options;
    if (codec !== undefined && !codecs.includes(codec))
      throw new UsageError(`unknown codec "${String(codec)}"`, {
        advice: `Use one of: ${codecs.join(', ')}`,
      });
    for (const [name, value] of Object.entries({ rowGroupSize, rowsPerPart })) {
      if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
        throw new UsageError(`${name} must be a positive integer, not ${value}`);
    }
    this.#path = path;
    this.#options = options;
  }

  describe(): JsonObject {
    const { codec = 'zstd', backend, overwrite } = this.#options;
    return { path: this.#path, codec, ...(backend && { backend }), ...(overwrite && { overwrite }) };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async check(): Promise<void> {
    await checkOutput(this.#path, this.#outputOptions());
  }

  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const output = await atomicOutput(this.#path, this.#outputOptions());
    try {
      const summary = await this.#writeParts(output.temporary, input, ctx);
      await output.commit();
      return summary;
    } catch (error) {
      throw await output.fail(error);
    }
  }

  #outputOptions(): AtomicOutputOptions {
    return {
      kind: this.#isFile ? 'file' : 'folder',
      overwrite: this.#options.overwrite,
      recognizes: isDatasetEntry,
    };
  }

  get #isFile(): boolean {
    return this.#path.endsWith('.parquet');
  }

  async #writeParts(temporary: string, input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const rowsPerPart = this.#isFile ? Infinity : (this.#options.rowsPerPart ?? 1 << 24);
    const encoder = new RowEncoder(ctx);
    const parts = new PartWriter(
      (part) => (this.#isFile ? temporary : join(temporary, partName(part))),
      input,
      this.#options,
      rowsPerPart,
      encoder,
    );
    try {
      const rows = await writeBatches(input, parts, ctx);
      return { path: this.#path, rows, bytes: parts.bytes, files: parts.files };
    } catch (error) {
      await parts.abort();
      throw error;
    } finally {
      await encoder.close();
    }
  }
}

/** Cuts a stream of batches into files of `rowsPerPart` rows. */
class PartWriter implements BatchOutput {
  bytes = 0;
  files = 0;
  #rowsInPart = 0;
  #writer: ParquetFileWriter | undefined;
  readonly #fileName: (part: number) => string;
  readonly #input: BatchStream;
  readonly #options: ParquetSinkOptions;
  readonly #rowsPerPart: number;
  readonly #encoder: RowEncoder;
  /** Files that have all their rows, and end while the next one begins. */
  readonly #ending: Promise<WrittenFile>[] = [];
  #failure: unknown;

  constructor(
    fileName: (part: number) => string,
    input: BatchStream,
    options: ParquetSinkOptions,
    rowsPerPart: number,
    encoder: RowEncoder,
  ) {
    this.#fileName = fileName;
    this.#input = input;
    this.#options = options;
    this.#rowsPerPart = rowsPerPart;
    this.#encoder = encoder;
  }

  async write(batch: RecordBatch): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + this.#rowsPerPart - this.#rowsInPart);
      const writer = await this.#open();
      await writer.write(end - start === batch.numRows ? batch : batch.slice(start, end));
      this.#rowsInPart += end - start;
      start = end;
      if (this.#rowsInPart === this.#rowsPerPart) this.#finishPart();
    }
  }

  async end(): Promise<void> {
    if (this.files === 0) await this.#open();
    this.#finishPart();
    for (const { bytes } of await Promise.all(this.#ending)) this.bytes += bytes;
  }

  async abort(): Promise<void> {
    const writer = this.#writer;
    this.#writer = undefined;
    await writer?.abort();
    await Promise.allSettled(this.#ending);
  }

  async #open(): Promise<ParquetFileWriter> {
    if (this.#writer !== undefined) return this.#writer;
    const { codec = 'zstd', rowGroupSize = 1 << 20, dictionary, backend } = this.#options;
    const file = this.#fileName(this.files++);
    this.#writer = await (
      await parquetBackend(backend)
    ).create(file, this.#input.schema, { codec, rowGroupSize, dictionary }, this.#encoder);
    return this.#writer;
  }

  #finishPart(): void {
    const writer = this.#writer;
    if (writer === undefined) return;
    const ended = writer.close().catch(async (error: unknown) => {
      await writer.abort();
      throw error;
    });
    ended.catch((error: unknown) => void (this.#failure ??= error));
    this.#ending.push(ended);
    this.#writer = undefined;
    this.#rowsInPart = 0;
  }
}
