import type { RecordBatch, Schema } from 'apache-arrow';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import type { WriteSummary, WritingContext } from '../../output/checked-sink.ts';
import { type BatchOutput, writeBatches } from '../../output/write-batches.ts';
import type { Codec, ParquetBackendName, ParquetFileWriter, WrittenFile } from '../backend.ts';
import { parquetBackend } from '../backends.ts';
import { EncodeRowGroups } from '../encode-row-groups.ts';
import { rowsSchema } from '../encoded-groups.ts';
import { GroupParts } from '../group-parts.ts';

export interface ParquetSinkOptions {
  readonly codec?: Codec;
  /**
   * Most rows of a row group. Default 1,048,576. Rows of a single stream fill it. If threads read splits of
   * the source, each task's rows are one group, unless they are less than a quarter of it.
   */
  readonly rowGroupSize?: number;
  /** Most rows of a part file in a folder. Files end at the end of a row group. Default 16,777,216. */
  readonly rowsPerPart?: number;
  /** Replaces an existing output of this kind. */
  readonly overwrite?: boolean;
  /** False for columns whose values rarely repeat. Default true. */
  readonly dictionary?: boolean;
  readonly backend?: ParquetBackendName;
}

/** The files of an output, and the options for writing them. */
export interface ParquetFiles extends Omit<ParquetSinkOptions, 'overwrite' | 'rowsPerPart'> {
  /** File name of a part. */
  readonly fileName: (part: number) => string;
  /** Most rows of a file; Infinity for one file. */
  readonly rowsPerPart: number;
  /** Name of the output in errors. */
  readonly output: string;
}

/** The operator that encodes rows as row groups; undefined if the backend writes row by row. */
export function rowGroupEncoding(files: Omit<ParquetFiles, 'fileName'>): EncodeRowGroups | undefined {
  const { codec = 'zstd', rowGroupSize = 1 << 20, dictionary = true, backend, output } = files;
  if (backend !== undefined && backend !== 'parquet-wasm') return undefined;
  const rowsPerPart = files.rowsPerPart === Infinity ? null : files.rowsPerPart;
  return new EncodeRowGroups({ codec, dictionary, rowGroupSize, rowsPerPart, file: output });
}

/** Writes rows, or the output of `rowGroupEncoding`. A stream without rows gives one file without rows. */
export async function writeParquetFiles(
  files: ParquetFiles,
  input: BatchStream,
  ctx: WritingContext,
): Promise<Pick<WriteSummary, 'rows' | 'bytes' | 'files'>> {
  const encoding = rowGroupEncoding(files);
  if (encoding === undefined) return written(new PartWriter(files, input.schema), input, ctx);
  const columns = rowsSchema(input.schema);
  const groups = columns === undefined ? encoding.execute(input, ctx) : input;
  return written(new GroupParts(files.fileName, columns ?? input.schema, encoding.options, ctx), groups, ctx);
}

async function written(
  parts: Parts,
  input: BatchStream,
  ctx: WritingContext,
): Promise<Pick<WriteSummary, 'rows' | 'bytes' | 'files'>> {
  try {
    const rows = await writeBatches(input, parts, ctx);
    return { rows, bytes: parts.bytes, files: parts.files };
  } catch (error) {
    await parts.abort();
    throw error;
  }
}

/** Writes rows into the files of an output. */
interface Parts extends BatchOutput {
  readonly bytes: number;
  readonly files: number;
  abort(): Promise<void>;
}

/** Writes a stream of rows with a backend, into files of `rowsPerPart` rows. */
class PartWriter implements Parts {
  bytes = 0;
  files = 0;
  #rowsInPart = 0;
  #writer: ParquetFileWriter | undefined;
  readonly #output: ParquetFiles;
  readonly #schema: Schema;
  /** Files that have all their rows; they are finished while the next one is written. */
  readonly #ending: Promise<WrittenFile>[] = [];
  #failure: unknown;

  constructor(output: ParquetFiles, schema: Schema) {
    [this.#output, this.#schema] = [output, schema];
  }

  async write(batch: RecordBatch): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const { rowsPerPart } = this.#output;
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + rowsPerPart - this.#rowsInPart);
      const writer = await this.#open();
      await writer.write(end - start === batch.numRows ? batch : batch.slice(start, end));
      this.#rowsInPart += end - start;
      start = end;
      if (this.#rowsInPart === rowsPerPart) this.#finishPart();
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
    const { codec = 'zstd', rowGroupSize = 1 << 20, dictionary, backend, fileName } = this.#output;
    const file = fileName(this.files++);
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
