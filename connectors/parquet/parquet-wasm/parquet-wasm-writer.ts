import type { FileHandle } from 'node:fs/promises';
import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { fileProblem } from '../../files/file-problem.ts';
import { emptyBatch } from '../../files/common-schema.ts';
import { appendAll, createFile } from '../../output/new-file.ts';
import type { Encoding } from '../../output/encode-rows.ts';
import { EncodedPieces, RowEncoder } from '../../output/row-encoder.ts';
import type { ParquetFileWriter, WriteOptions, WrittenFile } from '../backend.ts';
import { FileAssembly } from '../write/file-assembly.ts';

/**
 * Bytes of rows, as Arrow holds them, at which a row group ends before it has all its rows: it is encoded in
 * memory as a whole.
 */
const LARGEST_ROW_GROUP = 64 * 2 ** 20;

/** Creates the file (see ParquetBackend.create). */
export async function createWasmWriter(
  file: string,
  schema: Schema,
  options: WriteOptions,
  encoder?: RowEncoder,
): Promise<ParquetFileWriter> {
  return new WasmFileWriter(file, await createFile(file), schema, options, encoder ?? new RowEncoder());
}

/**
 * Collects rows to row groups, has these encoded, and puts them together in their order:
 *
 *     write(batch) -> rows of one group -> encoder, several groups at once -> pages, in order -> file;   close() -> page indexes, footer
 *
 * The bytes depend on the batches alone.
 *
 */
class WasmFileWriter implements ParquetFileWriter {
  readonly #file: string;
  readonly #handle: FileHandle;
  readonly #schema: Schema;
  readonly #rowGroupSize: number;
  readonly #assembly = new FileAssembly();
  readonly #pieces: EncodedPieces;
  readonly #encoding: Encoding;
  #group: RecordBatch[] = [];
  #groupRows = 0;
  #groupBytes = 0;
  #bytes = 0;

  constructor(
    file: string,
    handle: FileHandle,
    schema: Schema,
    { codec, dictionary = true, rowGroupSize }: WriteOptions,
    encoder: RowEncoder,
  ) {
    this.#file = file;
    this.#handle = handle;
    this.#schema = schema;
    this.#rowGroupSize = rowGroupSize;
    this.#pieces = new EncodedPieces(encoder, (bytes) => this.#append(this.#assembly.add(bytes)));
    this.#encoding = { format: 'parquet', codec, dictionary, file };
  }

  async write(batch: RecordBatch): Promise<void> {
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + this.#rowGroupSize - this.#groupRows);
      const rows = end - start === batch.numRows ? batch : batch.slice(start, end);
      this.#group.push(rows);
      this.#groupRows += end - start;
      this.#groupBytes += bytesOf(rows.data);
      start = end;
      if (this.#groupRows === this.#rowGroupSize || this.#groupBytes >= LARGEST_ROW_GROUP)
        await this.#endGroup();
    }
  }

  async close(): Promise<WrittenFile> {
    if (this.#groupRows > 0 || this.#pieces.rows === 0) await this.#endGroup();
    await this.#pieces.end();
    await this.#append(this.#assembly.end());
    await this.#handle.close();
    return { rows: this.#pieces.rows, bytes: this.#bytes };
  }

  async abort(): Promise<void> {
    await this.#pieces.abort();
    await this.#handle.close();
  }

  async #endGroup(): Promise<void> {
    const batches = this.#group.length === 0 ? [emptyBatch(this.#schema)] : this.#group;
    [this.#group, this.#groupRows, this.#groupBytes] = [[], 0, 0];
    await this.#pieces.add(batches, this.#encoding);
  }

  async #append(pieces: readonly Uint8Array[]): Promise<void> {
    try {
      for (const piece of pieces) {
        await appendAll(this.#handle, [piece]);
        this.#bytes += piece.length;
      }
    } catch (error) {
      throw fileProblem(error, 'write', this.#file);
    }
  }
}

/**
 * Bytes of a column's rows; of what lies behind offsets those that belong to them, since a slice keeps the
 * whole.
 */
function bytesOf({ length, valueOffsets, values, children, stride }: Data): number {
  const below = children.reduce((sum, child) => sum + bytesOf(child), 0);
  if (!(valueOffsets?.length > 0)) return below + (values?.BYTES_PER_ELEMENT ?? 0) * length * stride;
  const span = Number(valueOffsets[length]) - Number(valueOffsets[0]);
  return (
    valueOffsets.BYTES_PER_ELEMENT * length +
    (children.length === 0 ? span : (below * span) / Math.max(1, children[0].length))
  );
}
