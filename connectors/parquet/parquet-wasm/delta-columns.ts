import { Data, DataType } from 'apache-arrow';
import type { Field, Int } from 'apache-arrow';
import type { CompressionCodec, FileMetaData } from 'hyparquet';
import { parquetHeader, readColumn } from 'hyparquet/src/column.js';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { getSchemaPath } from 'hyparquet/src/schema.js';
import type { RowGroupInfo } from '../footer.ts';
import { pageCodecs, type UnpackPage } from '../pages/column-pages.ts';

/** Largest page, compressed or uncompressed. */
const PAGE_BYTES = 2 ** 31 - 1;

const { gzip, brotli, lz4_raw, zstd } = pageCodecs;
const unpackers: Partial<Record<CompressionCodec, UnpackPage>> = {
  GZIP: gzip,
  BROTLI: brotli,
  LZ4_RAW: lz4_raw,
  ...(zstd && { ZSTD: zstd }),
};

/**
 * Integer columns of at most 32 bits that are stored as differences (DELTA_BINARY_PACKED). The decoder
 * crashes if a difference needs 33 bits, such as between the smallest and the largest number. 64-bit integers
 * do not have this problem.
 */
export function deltaColumns({ columns }: RowGroupInfo, fields: readonly Field[]): Field<Int>[] {
  const stored = new Set(
    columns.filter(({ encodings }) => encodings.includes('delta_binary_packed')).map(({ column }) => column),
  );
  return fields.filter(
    (field): field is Field<Int> =>
      stored.has(field.name) && DataType.isInt(field.type) && field.type.bitWidth <= 32,
  );
}

/** Decodes such a column of a row group with another library. Throws an Error for damaged pages. */
export async function readDeltaColumn(
  file: Blob,
  metadata: FileMetaData,
  rowGroup: number,
  { name, type }: Field<Int>,
): Promise<Data> {
  const group = metadata.row_groups[rowGroup];
  const chunk = group.columns.find(
    ({ meta_data }) => meta_data?.path_in_schema.length === 1 && meta_data.path_in_schema[0] === name,
  )?.meta_data;
  if (chunk === undefined) throw new Error(`no column "${name}"`);
  const rows = Number(group.num_rows);
  const start = Number(chunk.dictionary_page_offset || chunk.data_page_offset);
  const view = new DataView(
    await file.slice(start, start + Number(chunk.total_compressed_size)).arrayBuffer(),
  );
  checkPages(view, rows);
  const schemaPath = getSchemaPath(metadata.schema, [name]);
  // Without a logical type, the library returns numbers as they are stored.
  const element = { ...schemaPath[1].element, converted_type: undefined, logical_type: undefined };
  const decoder = {
    pathInSchema: [name],
    type: chunk.type,
    element,
    schemaPath,
    codec: chunk.codec,
    compressors: unpackers,
  };
  const { data } = readColumn(
    { view, offset: 0 },
    { groupStart: 0, selectStart: 0, selectEnd: rows, groupRows: rows },
    decoder as never,
  );
  return toData(data as readonly ArrayLike<number | null | undefined>[], rows, type);
}

/** Checks the pages' headers before allocating the sizes they claim. */
function checkPages(view: DataView, rows: number): void {
  const reader = { view, offset: 0 };
  let values = 0;
  while (reader.offset < view.byteLength && values < rows) {
    const page = pageAt(reader);
    const isSound = Object.values(page).every(
      (number) => Number.isInteger(number) && number >= 0 && number <= PAGE_BYTES,
    );
    values += page.values;
    const end = reader.offset + page.stored;
    if (!isSound || values > rows || page.entries > page.size || end > view.byteLength)
      throw new Error('a page is damaged');
    reader.offset = end;
  }
  if (values !== rows) throw new Error(`${values} values in ${rows} rows`);
}

/** Sizes of the next page: stored and uncompressed bytes, values, dictionary entries. */
function pageAt(reader: { readonly view: DataView; offset: number }) {
  const {
    data_page_header: first,
    data_page_header_v2: second,
    dictionary_page_header: dictionary,
    compressed_page_size: stored,
    uncompressed_page_size: size,
  } = parquetHeader(reader);
  const values = first?.num_values ?? second?.num_values ?? 0;
  return { stored, size, values, entries: dictionary?.num_values ?? 0 };
}

function toData(chunks: readonly ArrayLike<number | null | undefined>[], rows: number, type: Int): Data {
  const values = new type.ArrayType(rows) as Int32Array;
  const bitmap = new Uint8Array(((rows + 63) >> 6) << 3);
  let [row, nulls] = [0, 0];
  for (const chunk of chunks) {
    for (let i = 0; i < chunk.length && row < rows; i++, row++) {
      const value = chunk[i];
      if (value === null || value === undefined) nulls++;
      else {
        values[row] = value;
        bitmap[row >> 3] |= 1 << (row & 7);
      }
    }
  }
  if (row !== rows) throw new Error(`${row} values in ${rows} rows`);
  return new Data(type, 0, rows, nulls, { 1: values, 2: nulls > 0 ? bitmap : undefined } as never);
}

/** The footer in hyparquet's form. */
export async function deltaMetadata(file: Blob): Promise<FileMetaData> {
  return parquetMetadataAsync({
    byteLength: file.size,
    slice: (from, to) => file.slice(from, to).arrayBuffer(),
  });
}
