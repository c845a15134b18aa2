import { makeData, RecordBatch, type Field, type Int32, type Schema } from 'apache-arrow';
import { batchOf } from '../../../engine/stream/whole-data.ts';
import type { FetchCounter, RandomAccess } from '../../files/random-access.ts';
import type { ParquetFileInfo, ReadOptions } from '../backend.ts';
import type { Footer } from '../footer.ts';
import { ColumnPages, isReadCodec, FileWindow } from './column-pages.ts';
import type { RowRange } from './cut-row-group.ts';
import { PageKernel } from './page-kernel.ts';

/** Supported encodings of pages and levels, as the footer lists them. */
const encodings = ['plain', 'plain_dictionary', 'rle_dictionary', 'rle', 'bit_packed'];

export interface PageFile {
  readonly file: string;
  readonly handle: RandomAccess;
  readonly footer: Footer;
  readonly counter: FetchCounter;
}

/**
 * True for columns of a row group that `readPages` can read: numbers without nulls, not nested, in the usual
 * encodings. It may still find pages that it cannot read.
 */
export function hasPlainPages(
  { rowGroups, plainColumns = [] }: ParquetFileInfo,
  rowGroup: number,
  names: readonly string[],
): boolean {
  return names.every((name) => {
    const chunk = rowGroups[rowGroup].columns.find(({ column }) => column === name);
    return (
      chunk !== undefined &&
      plainColumns.includes(name) &&
      isReadCodec(chunk.codec) &&
      !chunk.statistics.nulls &&
      chunk.encodings.every((encoding) => encodings.includes(encoding))
    );
  });
}

/** A batch, and the position of its first row in the range that is read. */
interface PlacedBatch {
  readonly batch: RecordBatch;
  readonly row: number;
}

/**
 * Reads rows of a row group from its pages, `batchSize` rows at a time. `borrowed`: the memory of a batch is
 * reused when the next one is pulled. `needed`: the column that it names is read first, and where none of its
 * values is needed, the other columns are passed over. Throws PageProblem at a page that it cannot read, after
 * the batches before it.
 */
export async function* readPages(
  { file, handle, footer, counter }: PageFile,
  rowGroup: number,
  { rows, starts }: RowRange,
  schema: Schema,
  { batchSize, borrowed = false, needed }: ReadOptions,
): AsyncGenerator<PlacedBatch> {
  const { columns, rows: all } = footer.rowGroups[rowGroup];
  const share = rows / all;
  const kernel = PageKernel.take();
  const windows: FileWindow[] = [];
  try {
    const most = Math.min(batchSize, rows);
    const readers = schema.fields.map((field) => {
      const chunk = columns.find(({ column }) => column === field.name) as (typeof columns)[number];
      const window = new FileWindow(handle, file, counter, chunk, share);
      windows.push(window);
      const width = field.type.ArrayType.BYTES_PER_ELEMENT as 4 | 8;
      return {
        field,
        out: kernel.reserve(most * width),
        pages: new ColumnPages(window, { ...chunk, file, rowGroup }, width, field.nullable, kernel),
      };
    });
    for (const { field, out, pages } of readers)
      if (starts[field.name] !== undefined) await pages.begin(starts[field.name], out, most);
    for (let row = 0; row < rows; row += most) {
      const length = Math.min(most, rows - row);
      const rowsNeeded = needed?.();
      const first = readers.find(({ field }) => field.name === rowsNeeded?.column);
      const others = readers.filter((reader) => reader !== first);
      if (first !== undefined) {
        await first.pages.fill(first.out, length);
        const values = column(first.field, kernel.buffer, first.out, length, true);
        if (!rowsNeeded?.mayHave(values)) {
          others.forEach(({ pages }) => pages.pass(length));
          continue;
        }
      }
      for (const { pages, out } of others) await pages.fill(out, length);
      const children = readers.map(({ field, out }) => column(field, kernel.buffer, out, length, borrowed));
      yield { batch: batchOf(schema, length, children), row };
    }
  } finally {
    for (const window of windows) window.giveBack();
    kernel.giveBack();
  }
}

function column({ type }: Field, buffer: ArrayBuffer, at: number, length: number, borrowed: boolean) {
  const bytes = length * type.ArrayType.BYTES_PER_ELEMENT;
  const data = borrowed
    ? new type.ArrayType(buffer, at, length)
    : new type.ArrayType(buffer.slice(at, at + bytes));
  return makeData({ type: type as Int32, length, nullCount: 0, data });
}
