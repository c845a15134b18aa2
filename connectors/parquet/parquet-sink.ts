import { fileKinds, hasExtension } from '../files/format-names.ts';
import { requirePath } from '../files/path-kinds.ts';
import { join } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { atomicOutput, checkOutput } from '../output/atomic-output.ts';
import type { AtomicOutputOptions } from '../output/atomic-output.ts';
import type { CheckedSink, FilesOfFolders, WriteSummary, WritingContext } from '../output/checked-sink.ts';
import { codecs } from './backend.ts';
import { isDatasetEntry, partName } from './part-names.ts';
import {
  type ParquetFiles,
  rowGroupEncoding,
  writeParquetFiles,
  type ParquetSinkOptions,
} from './write/parquet-files.ts';

/**
 * Writes a stream as Parquet: a folder of part-00000.parquet, part-00001.parquet, ..., or one file if the
 * path ends in ".parquet". The output appears when it is complete; a failure or cancellation leaves nothing.
 * Memory holds one row group. A stream without rows gives one part with the columns and no rows.
 */
export class ParquetSink implements CheckedSink {
  readonly name = 'parquet-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #options: ParquetSinkOptions;

  constructor(path: string, options: ParquetSinkOptions = {}) {
    checkParquetOptions(options);
    requirePath(path, 'write');
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

  /**
   * The operator that encodes the rows, so that threads can run it; undefined if the backend writes row by
   * row.
   */
  get encoding(): Operator | undefined {
    return rowGroupEncoding(this.#files);
  }

  /** Accepts rows, or the output of `encoding`. */
  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const output = await atomicOutput(this.#path, this.#outputOptions());
    try {
      const fileName = (part: number) =>
        this.#isFile ? output.temporary : join(output.temporary, partName(part));
      const written = await writeParquetFiles({ ...this.#files, fileName }, input, ctx);
      await output.commit();
      return { path: this.#path, ...written };
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

  get #files(): Omit<ParquetFiles, 'fileName'> {
    const { overwrite: _, rowsPerPart = 1 << 24, ...options } = this.#options;
    return { ...options, rowsPerPart: this.#isFile ? Infinity : rowsPerPart, output: this.#path };
  }
}

/** Throws UsageError for options that cannot be used. */
export function checkParquetOptions({ codec, rowGroupSize, rowsPerPart }: ParquetSinkOptions): void {
  if (codec !== undefined && !codecs.includes(codec))
    throw new UsageError(`unknown codec "${String(codec)}"`, {
      advice: `Use one of: ${codecs.join(', ')}`,
    });
  for (const [name, value] of Object.entries({ rowGroupSize, rowsPerPart })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
      throw new UsageError(`${name} must be a positive integer, not ${value}`);
  }
}

/** Throws UsageError for options that cannot be used. */
export function parquetFiles(path: string, options: Omit<ParquetSinkOptions, 'overwrite'>): FilesOfFolders {
  checkParquetOptions(options);
  const { rowsPerPart = 1 << 24 } = options;
  return {
    name: 'parquet',
    extension: '.parquet',
    isFile: (name) => hasExtension(name, fileKinds.parquet.extensions),
    write: (fileName, rows, ctx) =>
      writeParquetFiles({ ...options, rowsPerPart, fileName, output: path }, rows, ctx),
  };
}
