import { makeData, RecordBatch, Struct } from 'apache-arrow';
import type { Field, Int32, Schema } from 'apache-arrow';
import type { FetchCounter } from '../parquet-wasm/file-blob.ts';
import type { Footer, RowGroupInfo } from '../footer.ts';
import type { RandomAccess } from '../random-access.ts';
import { ColumnPages, isReadCodec } from './column-pages.ts';
import { FileWindow } from './file-window.ts';
import { storedAsIs } from './footer-schema.ts';
import { PageKernel } from './page-kernel.ts';

/** Encodings of a column's pages and levels that are read here, as the footer lists them. */
const encodings = ['plain', 'plain_dictionary', 'rle_dictionary', 'rle', 'bit_packed'];

export interface PageFile {
  readonly file: string;
  readonly handle: RandomAccess;
  readonly footer: Footer;
  readonly counter: FetchCounter;
}

/** True for columns of a row group that `readPages` reads: numbers without nulls, not nested, in the usual encodings. It still may meet pages that it does not read. */
export function hasPlainPages(footer: Footer, { columns }: RowGroupInfo, { fields }: Schema): boolean {
  return fields.every(({ name, type }) => {
    const chunk = columns.find(({ column }) => column === name);
    return chunk !== undefined && storedAsIs(footer, name, type) && isReadCodec(chunk.codec) && !chunk.statistics.nulls && chunk.encodings.every((encoding) => encodings.includes(encoding));
  });
}

/**
 * The rows of a row group, `batchSize` at a time, straight from its pages. `borrowed`: a batch lies in memory that is used again when the next one
 * is pulled. Throws PageProblem where `hasPlainPages` did not see all, behind the batches before that place.
 */
export async function* readPages({ file, handle, footer, counter }: PageFile, rowGroup: number, schema: Schema, batchSize: number, borrowed: boolean): AsyncGenerator<RecordBatch> {
  const { rows, columns } = footer.rowGroups[rowGroup];
  const kernel = PageKernel.take();
  try {
    const most = Math.min(batchSize, rows);
    const readers = schema.fields.map((field) => {
      const chunk = columns.find(({ column }) => column === field.name) as (typeof columns)[number];
      const width = field.type.ArrayType.BYTES_PER_ELEMENT as 4 | 8;
      return { field, out: kernel.reserve(most * width), pages: new ColumnPages(new FileWindow(handle, file, counter, chunk), chunk, width, field.nullable, kernel) };
    });
    for (let row = 0; row < rows; row += most) {
      const length = Math.min(most, rows - row);
      for (const { pages, out } of readers) await pages.fill(out, length);
      const children = readers.map(({ field, out }) => column(field, kernel.buffer, out, length, borrowed));
      yield new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }));
    }
  } finally {
    kernel.giveBack();
  }
}

function column({ type }: Field, buffer: ArrayBuffer, at: number, length: number, borrowed: boolean) {
  const bytes = length * type.ArrayType.BYTES_PER_ELEMENT;
  const data = borrowed ? new type.ArrayType(buffer, at, length) : new type.ArrayType(buffer.slice(at, at + bytes));
  return makeData({ type: type as Int32, length, nullCount: 0, data });
}
