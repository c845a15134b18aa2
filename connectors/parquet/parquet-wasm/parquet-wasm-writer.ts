import type { RecordBatch, Schema } from 'apache-arrow';
import { emptyBatch } from '../../files/common-schema.ts';
import type { Encoding } from '../../output/encode-rows.ts';
import { EncodedPieces, RowEncoder } from '../../output/row-encoder.ts';
import type { ParquetFileWriter, WriteOptions, WrittenFile } from '../backend.ts';
import { dataBytes, LARGEST_ROW_GROUP } from '../row-group-bytes.ts';
import { PartFile } from '../write/part-file.ts';

/** Creates the file (see ParquetBackend.create). */
export async function createWasmWriter(
  file: string,
  schema: Schema,
  options: WriteOptions,
): Promise<ParquetFileWriter> {
  return new WasmFileWriter(file, await PartFile.create(file), schema, options);
}

/**
 * Collects rows into row groups, has them encoded, and joins the results in order:
 *
 *     write(batch) -> rows of one group -> encoder, several groups at once -> pages, in order -> file;   close() -> page indexes, footer
 *
 * The bytes depend only on the batches.
 */
class WasmFileWriter implements ParquetFileWriter {
  readonly #part: PartFile;
  readonly #schema: Schema;
  readonly #rowGroupSize: number;
  readonly #pieces: EncodedPieces;
  readonly #encoding: Encoding;
  #group: RecordBatch[] = [];
  #groupRows = 0;
  #groupBytes = 0;

  constructor(
    file: string,
    part: PartFile,
    schema: Schema,
    { codec, dictionary = true, rowGroupSize }: WriteOptions,
  ) {
    this.#part = part;
    this.#schema = schema;
    this.#rowGroupSize = rowGroupSize;
    this.#pieces = new EncodedPieces(new RowEncoder(), (bytes) => part.append(bytes));
    this.#encoding = { format: 'parquet', codec, dictionary, file };
  }

  async write(batch: RecordBatch): Promise<void> {
    for (let start = 0; start < batch.numRows;) {
      const end = Math.min(batch.numRows, start + this.#rowGroupSize - this.#groupRows);
      const rows = end - start === batch.numRows ? batch : batch.slice(start, end);
      this.#group.push(rows);
      this.#groupRows += end - start;
      this.#groupBytes += dataBytes(rows.data);
      start = end;
      if (this.#groupRows === this.#rowGroupSize || this.#groupBytes >= LARGEST_ROW_GROUP)
        await this.#endGroup();
    }
  }

  async close(): Promise<WrittenFile> {
    if (this.#groupRows > 0 || this.#pieces.rows === 0) await this.#endGroup();
    await this.#pieces.end();
    await this.#part.close();
    return { rows: this.#pieces.rows, bytes: this.#part.bytes };
  }

  async abort(): Promise<void> {
    await this.#pieces.abort();
    await this.#part.abort();
  }

  async #endGroup(): Promise<void> {
    const batches = this.#group.length === 0 ? [emptyBatch(this.#schema)] : this.#group;
    [this.#group, this.#groupRows, this.#groupBytes] = [[], 0, 0];
    await this.#pieces.add(batches, this.#encoding);
  }
}
