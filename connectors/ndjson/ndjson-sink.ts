import type { JsonObject } from '../../engine/json.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { type Compression, compressionOf, endingOf } from '../compression/compressions.ts';
import { outputName } from '../files/path-kinds.ts';
import { ByteOutput, requireFileName } from '../output/byte-output.ts';
import {
  type CheckedSink,
  type FilesOfFolders,
  sinkFiles,
  type WriteSummary,
  type WritingContext,
} from '../output/checked-sink.ts';
import { writeLines } from '../output/write-batches.ts';
import { JsonLines } from '../text/line-encoders.ts';

export interface NdjsonSinkOptions {
  /** Default: by the path's ending: .gz, .zst or .lz4, else none. zstd needs Node 22.15. */
  readonly compression?: Compression;
  /** Replaces an existing file. */
  readonly overwrite?: boolean;
}

/**
 * Writes a stream as one file of NDJSON (or to stdout, "-"): an object a line, whose fields are the columns.
 * Floats always have a point or an exponent, and 64-bit integers all their digits. The file appears once it
 * is complete.
 */
export class NdjsonSink implements CheckedSink {
  readonly name = 'ndjson-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #options: { readonly compression: Compression; readonly overwrite: boolean };

  constructor(path: string, { compression, overwrite = false }: NdjsonSinkOptions = {}) {
    requireFileName(path);
    this.#path = path;
    this.#options = { compression: compression ?? compressionOf(path).compression, overwrite };
  }

  describe(): JsonObject {
    return { path: this.#path, ...this.#options };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async check(): Promise<void> {
    await ByteOutput.check(this.#path, this.#options);
  }

  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const file = outputName(this.#path);
    // Throws for columns that NDJSON cannot hold.
    void new JsonLines(input.schema, file);
    const output = await ByteOutput.open(this.#path, this.#options);
    const rows = await writeLines(input, output, new Uint8Array(0), { format: 'ndjson', file }, ctx);
    return { path: this.#path, rows, bytes: output.bytes, files: 1 };
  }
}

export function ndjsonFiles({ compression = 'none' }: Omit<NdjsonSinkOptions, 'overwrite'>): FilesOfFolders {
  return sinkFiles('ndjson', `.ndjson${endingOf(compression)}`, (file) => new NdjsonSink(file));
}
