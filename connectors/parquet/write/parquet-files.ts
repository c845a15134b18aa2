import type { RecordBatch, Schema } from 'apache-arrow';
import type { FileHandle } from 'node:fs/promises';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';
import { openIpc } from '../../../engine/stream/read-ipc.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { emptyBatch } from '../../files/common-schema.ts';
import { fileProblem } from '../../files/file-problem.ts';
import type { WriteSummary, WritingContext } from '../../output/checked-sink.ts';
import { appendAll, createFile } from '../../output/new-file.ts';
import { RowEncoder } from '../../output/row-encoder.ts';
import { type BatchOutput, writeBatches } from '../../output/write-batches.ts';
import type { Codec, ParquetBackendName, ParquetFileWriter } from '../backend.ts';
import { parquetBackend } from '../backends.ts';
import {
  type EncodedGroup,
  EncodeRowGroups,
  groupOfBatch,
  type RowGroupOptions,
  rowsSchema,
} from '../encode-row-groups.ts';
import { FileAssembly } from './file-assembly.ts';

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

  constructor(output: ParquetFiles, schema: Schema) {
    [this.#output, this.#schema] = [output, schema];
  }

  async write(batch: RecordBatch): Promise<void> {
    const { rowsPerPart } = this.#output;
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + rowsPerPart - this.#rowsInPart);
      const writer = (this.#writer ??= await this.#open());
      await writer.write(end - start === batch.numRows ? batch : batch.slice(start, end));
      this.#rowsInPart += end - start;
      start = end;
      if (this.#rowsInPart === rowsPerPart) await this.#endPart();
    }
  }

  async end(): Promise<void> {
    if (this.files === 0) this.#writer = await this.#open();
    await this.#endPart();
  }

  async abort(): Promise<void> {
    await this.#writer?.abort();
  }

  async #open(): Promise<ParquetFileWriter> {
    const { codec = 'zstd', rowGroupSize = 1 << 20, dictionary, backend, fileName } = this.#output;
    const { create } = await parquetBackend(backend);
    return create(fileName(this.files++), this.#schema, { codec, rowGroupSize, dictionary });
  }

  async #endPart(): Promise<void> {
    this.bytes += (await this.#writer?.close())?.bytes ?? 0;
    [this.#writer, this.#rowsInPart] = [undefined, 0];
  }
}

/**
 * Writes encoded row groups, in order, into files of at most `rowsPerPart` rows. The few rows left over by
 * tasks are first joined into a group.
 */
class GroupParts implements BatchOutput {
  bytes = 0;
  files = 0;
  #rowsInPart = 0;
  #part: PartFile | undefined;
  #few: RowStream | undefined;
  readonly #fileName: (part: number) => string;
  readonly #schema: Schema;
  readonly #options: RowGroupOptions;
  readonly #encoder: RowEncoder;

  constructor(
    fileName: (part: number) => string,
    schema: Schema,
    options: RowGroupOptions,
    ctx: WritingContext,
  ) {
    [this.#fileName, this.#schema, this.#options] = [fileName, schema, options];
    this.#encoder = new RowEncoder(ctx);
  }

  rowsOf(batch: RecordBatch): number {
    return groupOfBatch(batch).rows;
  }

  async write(batch: RecordBatch): Promise<void> {
    const group = groupOfBatch(batch);
    const few = this.#few?.rows ?? 0;
    if (few > 0 && (group.isEncoded || few + group.rows > this.#mostRows)) await this.#endFew();
    if (group.isEncoded) return this.#append(group);
    this.#few ??= new RowStream(this.#schema, false);
    for (const rows of openIpc(group.bytes)) this.#few.add(rows);
  }

  async end(): Promise<void> {
    if (this.files === 0 && this.#few === undefined) {
      this.#few = new RowStream(this.#schema, false);
      this.#few.add(emptyBatch(this.#schema));
    }
    await this.#endFew();
    await this.#endPart();
    await this.#encoder.close();
  }

  async abort(): Promise<void> {
    await this.#part?.abort();
    await this.#encoder.close();
  }

  get #mostRows(): number {
    return Math.min(this.#options.rowGroupSize, this.#options.rowsPerPart ?? Infinity);
  }

  async #endFew(): Promise<void> {
    const few = this.#few;
    if (few === undefined) return;
    this.#few = undefined;
    const { codec, dictionary, file } = this.#options;
    const rows = few.rows;
    const bytes = await this.#encoder.encode(few, { format: 'parquet', codec, dictionary, file }, 0);
    await this.#append({ rows, bytes });
  }

  async #append({ rows, bytes }: Pick<EncodedGroup, 'rows' | 'bytes'>): Promise<void> {
    const { rowsPerPart } = this.#options;
    if (rowsPerPart !== null && this.#rowsInPart + rows > rowsPerPart) await this.#endPart();
    this.#part ??= await PartFile.create(this.#fileName(this.files++));
    await this.#part.append(bytes);
    this.#rowsInPart += rows;
  }

  async #endPart(): Promise<void> {
    const part = this.#part;
    if (part === undefined) return;
    await part.close();
    this.bytes += part.bytes;
    [this.#part, this.#rowsInPart] = [undefined, 0];
  }
}

/** A Parquet file assembled from encoded row groups. End it with `close` or `abort`. */
export class PartFile {
  bytes = 0;
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #assembly = new FileAssembly();

  private constructor(file: string, handle: FileHandle) {
    [this.#file, this.#handle] = [file, handle];
  }

  static async create(file: string): Promise<PartFile> {
    return new PartFile(file, await createFile(file));
  }

  /** Appends a row group, encoded by `encodeRowGroup`. */
  async append(group: Uint8Array): Promise<void> {
    await this.#write(this.#assembly.add(group));
  }

  async close(): Promise<void> {
    await this.#write(this.#assembly.end());
    await this.#handle.close();
  }

  async abort(): Promise<void> {
    await this.#handle.close();
  }

  async #write(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      this.bytes += await appendAll(this.#handle, pieces);
    } catch (error) {
      throw fileProblem(error, 'write', this.#file);
    }
  }
}
