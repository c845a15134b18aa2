import type { RecordBatch, Schema } from 'apache-arrow';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { atomicOutput, checkOutput } from '../output/atomic-output.ts';
import type { AtomicOutputOptions } from '../output/atomic-output.ts';
import type { CheckedSink, WriteSummary, WritingContext } from '../output/checked-sink.ts';
import { writeBatches } from '../output/write-batches.ts';
import type { BatchOutput } from '../output/write-batches.ts';
import { codecs } from './backend.ts';
import type { Codec, ParquetBackendName, ParquetFileWriter, WrittenFile } from './backend.ts';
import { parquetBackend } from './backends.ts';
import { EncodeRowGroups } from './encode-row-groups.ts';
import { rowsSchema } from './encoded-groups.ts';
import { GroupParts } from './group-parts.ts';
import { isDatasetEntry, partName } from './part-names.ts';

export interface ParquetSinkOptions {
  readonly codec?: Codec;
  /**
   * Most rows of a row group. Default 1,048,576. Rows that come in one stream fill it; where threads read splits
   * of the source, the rows of a task are a group, unless they are less than a quarter of it.
   */
  readonly rowGroupSize?: number;
  /** Most rows of a part file in a folder, which ends with a row group. Default 16,777,216. */
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

  /** The operator that encodes the rows, which threads can run; absent where the backend writes row by row. */
  get encoding(): Operator | undefined {
    return this.#encoding;
  }

  get #encoding(): EncodeRowGroups | undefined {
    const { codec = 'zstd', rowGroupSize = 1 << 20, dictionary = true, backend } = this.#options;
    if (backend !== undefined && backend !== 'parquet-wasm') return undefined;
    const rowsPerPart = this.#rowsPerPart === Infinity ? null : this.#rowsPerPart;
    return new EncodeRowGroups({ codec, dictionary, rowGroupSize, rowsPerPart, file: this.#path });
  }

  /** Takes rows, or what `encoding` made of them. */
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

  get #rowsPerPart(): number {
    return this.#isFile ? Infinity : (this.#options.rowsPerPart ?? 1 << 24);
  }

  async #writeParts(temporary: string, input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const fileName = (part: number) => (this.#isFile ? temporary : join(temporary, partName(part)));
    const encoding = this.#encoding;
    if (encoding === undefined) {
      const parts = new PartWriter(fileName, input.schema, this.#options, this.#rowsPerPart);
      return this.#written(parts, input, ctx);
    }
    const columns = rowsSchema(input.schema);
    const groups = columns === undefined ? encoding.execute(input, ctx) : input;
    const parts = new GroupParts(fileName, columns ?? input.schema, encoding.options, ctx);
    return this.#written(parts, groups, ctx);
  }

  async #written(parts: Parts, input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    try {
      const rows = await writeBatches(input, parts, ctx);
      return { path: this.#path, rows, bytes: parts.bytes, files: parts.files };
    } catch (error) {
      await parts.abort();
      throw error;
    }
  }
}

/** Rows on their way into the files of an output. */
interface Parts extends BatchOutput {
  readonly bytes: number;
  readonly files: number;
  abort(): Promise<void>;
}

/** Cuts a stream of rows, which a backend encodes, into files of `rowsPerPart` rows. */
class PartWriter implements Parts {
  bytes = 0;
  files = 0;
  #rowsInPart = 0;
  #writer: ParquetFileWriter | undefined;
  readonly #fileName: (part: number) => string;
  readonly #schema: Schema;
  readonly #options: ParquetSinkOptions;
  readonly #rowsPerPart: number;
  /** Files that have all their rows, and end while the next one begins. */
  readonly #ending: Promise<WrittenFile>[] = [];
  #failure: unknown;

  constructor(
    fileName: (part: number) => string,
    schema: Schema,
    options: ParquetSinkOptions,
    rowsPerPart: number,
  ) {
    this.#fileName = fileName;
    this.#schema = schema;
    this.#options = options;
    this.#rowsPerPart = rowsPerPart;
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
    ).create(file, this.#schema, { codec, rowGroupSize, dictionary });
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
