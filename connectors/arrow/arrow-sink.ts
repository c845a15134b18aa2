import {
  Message,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  type RecordBatchWriter,
  type Schema,
} from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { KeptBytes } from '../../engine/stream/ipc-bytes.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { requireZstd } from '../compression/compressions.ts';
import { outputName, STANDARD_STREAM } from '../files/path-kinds.ts';
import { ByteOutput, requireFileName } from '../output/byte-output.ts';
import {
  type CheckedSink,
  type FilesOfFolders,
  sinkFiles,
  type WriteSummary,
  type WritingContext,
} from '../output/checked-sink.ts';
import { writeBytes } from '../output/write-batches.ts';
import { type ArrowCodec, arrowCodecs, writerOptions } from './ipc-messages.ts';

export interface ArrowSinkOptions {
  /** IPC file or IPC stream. Default: a stream for stdout and .arrows, else a file. */
  readonly format?: 'file' | 'stream';
  /** Compression of the batches' buffers. Default: uncompressed. zstd needs Node 22.15. */
  readonly codec?: ArrowCodec;
  /** Replaces an existing file. */
  readonly overwrite?: boolean;
}

/** Writes a stream as Arrow IPC to one file (or to stdout, "-"). The file appears once it is complete. */
export class ArrowSink implements CheckedSink {
  readonly name = 'arrow-sink';
  readonly phase = 'write';
  readonly #path: string;
  readonly #format: 'file' | 'stream';
  readonly #codec: ArrowCodec;
  readonly #overwrite: boolean | undefined;

  /** Throws UsageError for a codec that Arrow does not have. */
  constructor(path: string, options: ArrowSinkOptions = {}) {
    requireFileName(path);
    const { codec = 'uncompressed' } = options;
    if (!arrowCodecs.includes(codec))
      throw new UsageError(`Arrow has no codec ${String(codec)}`, {
        phase: 'write',
        file: path,
        advice: `Use one of: ${arrowCodecs.join(', ')}`,
      });
    this.#codec = codec;
    this.#path = path;
    this.#format =
      options.format ?? (path === STANDARD_STREAM || /\.arrows$/i.test(path) ? 'stream' : 'file');
    this.#overwrite = options.overwrite;
  }

  describe(): JsonObject {
    return {
      path: this.#path,
      format: this.#format,
      codec: this.#codec,
      ...(this.#overwrite && { overwrite: true }),
    };
  }

  requiredColumns(): undefined {
    return undefined;
  }

  async check(): Promise<void> {
    if (this.#path === STANDARD_STREAM && process.stdout.isTTY)
      throw new UsageError('Arrow is bytes, which a terminal cannot show', {
        phase: 'write',
        file: outputName(this.#path),
        advice: 'Redirect stdout to a file or a program, or choose csv or ndjson',
      });
    if (this.#codec === 'zstd') requireZstd('write', outputName(this.#path));
    await ByteOutput.check(this.#path, { overwrite: this.#overwrite });
  }

  async consume(input: BatchStream, ctx: WritingContext): Promise<WriteSummary> {
    const output = await ByteOutput.open(this.#path, { overwrite: this.#overwrite });
    const options = writerOptions(this.#codec);
    const writer =
      this.#format === 'file' ? new SequentialFileWriter(options) : new RecordBatchStreamWriter(options);
    const rows = await writeBytes(input, output, ipcBytes(writer, input.schema, output), ctx);
    return { path: this.#path, rows, bytes: output.bytes, files: 1 };
  }
}

export function arrowFiles(options: Omit<ArrowSinkOptions, 'overwrite'>): FilesOfFolders {
  const extension = options.format === 'stream' ? '.arrows' : '.arrow';
  return { ...sinkFiles('arrow', extension, (file) => new ArrowSink(file, options)), name: 'arrow' };
}

/**
 * Encodes batches with apache-arrow's writer, which writes into a queue; the bytes of each batch are taken
 * from there.
 */
function ipcBytes(writer: RecordBatchWriter, schema: Schema, output: ByteOutput) {
  const queue = new KeptBytes();
  const write = async (encode: () => unknown) => {
    encode();
    await output.write(queue.take());
  };
  return {
    begin: () => write(() => writer.reset(queue, schema)),
    // The writer starts a new stream if a batch has another schema object than the one before, even an equal
    // one.
    write: (batch: RecordBatch) => write(() => writer.write(new RecordBatch(schema, batch.data))),
    end: () => write(() => writer.finish()),
  };
}

/**
 * apache-arrow's file writer leaves out the schema at the beginning of the file. This one writes it, as the
 * format demands, so that the file can be read from a pipe.
 */
class SequentialFileWriter extends RecordBatchFileWriter {
  protected override _writeSchema(schema: Schema): this {
    super._writeSchema(schema);
    return this._writeMessage(Message.from(schema));
  }
}
