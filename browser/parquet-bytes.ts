import { parquetMetadata } from 'hyparquet/src/metadata.js';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import type { FileMetaData } from 'hyparquet/src/types.js';
import { crc32OfBytes, BODY_SUM, hexOf } from '../connectors/model/decode-metadata.ts';
import { checkThriftShape } from '../connectors/parquet/thrift-shape.ts';
import { type RangedFile, problem } from './remote-file.ts';

/** Bytes after the footer: its length, and the text PAR1. */
const END = 8;
const COPY = 'Copy the model again';

/**
 * The footer of a Parquet file. `digest`: the CRC-32 of the whole file by the model's metadata. A file that
 * FactorFlow wrote stores the CRC-32 of the bytes before its footer, so the footer alone shows whether the file
 * is the model's own. Throws an Error for a damaged footer, DataError for a file of another model.
 */
export async function readFooter(file: RangedFile, digest?: string): Promise<FileMetaData> {
  const { url, byteLength: size } = file;
  if (size < END) throw new Error(`it has ${size} bytes`);
  const length = new DataView(await file.slice(size - END, size)).getUint32(0, true);
  if (length > size - END) throw new Error(`a footer of ${length} bytes in a file of ${size}`);
  const bytes = new Uint8Array(await file.slice(size - END - length, size));
  checkThriftShape(bytes.subarray(0, length));
  const metadata = parquetMetadata(bytes.buffer);
  const body = metadata.key_value_metadata?.find(({ key }) => key === BODY_SUM)?.value;
  const found = body === undefined ? digest : hexOf(crc32OfBytes(bytes, Number.parseInt(body, 16)));
  if (digest !== undefined && found !== digest)
    throw problem(
      url,
      `the file is damaged or belongs to another model: its checksum is ${found}, and the metadata say ${digest}`,
      COPY,
    );
  return metadata;
}

/** A column chunk: its bytes in the file. */
interface Chunk {
  readonly start: number;
  readonly end: number;
}

/**
 * The file, whose pages are compared with the checksums in their headers, if the writer stored them. Bytes of a
 * column are read from the start of a page on.
 */
export function withPageSums(file: RangedFile, { row_groups: groups }: FileMetaData): RangedFile {
  const chunks = groups.flatMap(({ columns }) =>
    columns.flatMap(({ meta_data: own }): Chunk[] => {
      if (own === undefined) return [];
      const start = Number(own.dictionary_page_offset || own.data_page_offset);
      return [{ start, end: start + Number(own.total_compressed_size) }];
    }),
  );
  const { url, byteLength } = file;
  const slice = async (start: number, end = byteLength, signal?: AbortSignal) => {
    const bytes = await file.slice(start, end, signal);
    for (const chunk of chunks) {
      const [from, to] = [Math.max(start, chunk.start), Math.min(end, chunk.end)];
      if (from < to) checkPages(new Uint8Array(bytes, from - start, to - from), from, url);
    }
    return bytes;
  };
  return { url, byteLength, slice };
}

/** Checks the pages that are completely within some bytes, which begin at byte `from` of the file. */
function checkPages(bytes: Uint8Array, from: number, url: string): void {
  for (let at = 0; at < bytes.length;) {
    const rest = bytes.subarray(at);
    try {
      checkThriftShape(rest);
    } catch {
      return; // The decoder reports bytes that are no page.
    }
    const reader = { view: new DataView(rest.buffer, rest.byteOffset, rest.byteLength), offset: 0 };
    const header = deserializeTCompactProtocol(reader);
    const [packed, stored] = [Number(header.field_3), header.field_4 as number | undefined];
    if (!(packed >= 0 && reader.offset + packed <= rest.length)) return;
    const found = crc32OfBytes(rest.subarray(reader.offset, reader.offset + packed));
    if (stored !== undefined && found !== stored >>> 0)
      throw problem(
        url,
        `the page at byte ${from + at} is damaged: its bytes have the checksum ${hexOf(found)}, and its header says ${hexOf(stored >>> 0)}`,
        COPY,
      );
    at += reader.offset + packed;
  }
}
