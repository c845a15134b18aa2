import { type RecordBatch, type Schema } from 'apache-arrow';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { emptyBatch } from '../files/common-schema.ts';
import type { WritingContext } from '../output/checked-sink.ts';
import { RowEncoder } from '../output/row-encoder.ts';
import type { BatchOutput } from '../output/write-batches.ts';
import type { RowGroupOptions } from './encode-row-groups.ts';
import { type EncodedGroup, groupOfBatch } from './encoded-groups.ts';
import { PartFile } from './write/part-file.ts';
import { openIpc } from '../../engine/stream/read-ipc.ts';

/**
 * Writes encoded row groups, in order, into files of at most `rowsPerPart` rows. The few rows left over by
 * tasks are first joined into a group.
 */
export class GroupParts implements BatchOutput {
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
