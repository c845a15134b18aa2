import { makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { deserializeTCompactProtocol } from 'hyparquet/src/thrift.js';
import parquetjs from 'parquetjs-lite';
import type { ColumnChunkData, ParquetEnvelopeReader, ParquetReader } from 'parquetjs-lite';
import { open } from 'node:fs/promises';
import { closeReader } from '../../../engine/regular-file.ts';
import { DataError, FactorFlowError, UsageError } from '../../../engine/errors.ts';
import { errorCode, fileProblem, messageOf } from '../../files/file-problem.ts';
import { isUrl } from '../../files/path-kinds.ts';
import type {
  LocatedBatch,
  ParquetBackend,
  ParquetFileInfo,
  ParquetFileReader,
  ReadOptions,
} from '../backend.ts';
import { readExactly, readFooter } from '../footer-file.ts';
import type { ColumnChunkInfo, Footer } from '../footer.ts';
import { PageSums } from '../pages/page-sums.ts';
import { openRandomAccess } from '../random-access.ts';
import { checkThriftShape } from '../thrift-shape.ts';
import { columnData, flatSchema } from './parquetjs-lite-columns.ts';
import { createLiteWriter } from './parquetjs-lite-writer.ts';

/**
 * A second backend, in pure JavaScript. It reads flat columns in plain or old-style dictionary pages,
 * uncompressed, snappy or gzip. Data that the library would read wrongly (see `refusal` and `checkPages`) are
 * refused. Values are converted to the column's type one by one.
 */
export const parquetjsLiteBackend: ParquetBackend = {
  name: 'parquetjs-lite',
  async open(file) {
    if (isUrl(file))
      throw new UsageError('parquetjs-lite reads no URLs', {
        phase: 'read',
        file,
        advice: 'Use the parquet-wasm backend, or download the file first',
      });
    const footer = await readFooter(file);
    const schema = flatSchema(footer.schema, file);
    return new LiteFileReader(footer, {
      file,
      bytes: footer.fileBytes,
      rows: footer.rows,
      schema,
      rowGroups: footer.rowGroups,
    });
  },
  create: createLiteWriter,
};

const readableCodecs = ['uncompressed', 'snappy', 'gzip'];
/**
 * Supported encodings of pages. "rle" and "bit_packed" are encodings of levels; the library throws if it
 * cannot read them.
 */
const readableEncodings = ['plain', 'plain_dictionary', 'rle', 'bit_packed'];
/**
 * Larger dictionaries are refused: for them the library adds the bytes of a repeated index instead of
 * shifting them.
 */
const LARGEST_DICTIONARY = 256;
const [plain, plainDictionary] = [0, 2];

class LiteFileReader implements ParquetFileReader {
  readonly info: ParquetFileInfo;
  readonly #footer: Footer;
  #envelope: ParquetEnvelopeReader | undefined;

  constructor(footer: Footer, info: ParquetFileInfo) {
    this.#footer = footer;
    this.info = info;
  }

  async *read(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    const { file, rowGroups } = this.info;
    const fields = this.info.schema.fields.filter(({ name }) => options.columns?.includes(name) ?? true);
    const schema = new Schema(fields);
    const wanted = options.rowGroups ?? [...rowGroups.keys()];
    for (const rowGroup of wanted) {
      for (const { name } of fields) await this.#checkChunk(name, rowGroup);
    }
    const reader = await this.#reader();
    for (const rowGroup of wanted) {
      const { rows, firstRow } = rowGroups[rowGroup];
      const columns: Data[] = [];
      for (const field of fields)
        columns.push(
          columnData(field, await this.#readChunk(reader, field.name, rowGroup), rows, { file, rowGroup }),
        );
      for (let start = 0; start < rows; start += options.batchSize) {
        const length = Math.min(options.batchSize, rows - start);
        const children = columns.map((column) => column.slice(start, length));
        const batch = new RecordBatch(
          schema,
          makeData({ type: new Struct(fields), length, nullCount: 0, children }),
        );
        yield { batch, rowGroup, firstRow: firstRow + start };
      }
    }
  }

  async close(): Promise<void> {
    await this.#envelope?.close();
    this.#envelope = undefined;
  }

  async #reader(): Promise<ParquetReader> {
    const { file } = this.info;
    try {
      this.#envelope ??= await parquetjs.ParquetEnvelopeReader.openFile(file);
      const metadata = await this.#envelope.readFooter();
      // The library accepts only version 1 in the footer. Pages may have either version, independently of the
      // footer; they are checked one by one.
      metadata.version = 1;
      return new parquetjs.ParquetReader(metadata, this.#envelope, { rawStatistics: true });
    } catch (error) {
      throw problem(error, { file });
    }
  }

  async #readChunk(reader: ParquetReader, column: string, rowGroup: number): Promise<ColumnChunkData> {
    const place = { file: this.info.file, rowGroup, column };
    const chunk = reader.metadata.row_groups[rowGroup].columns.find(
      ({ meta_data }) => meta_data.path_in_schema.join('.') === column,
    );
    if (this.#envelope === undefined || chunk === undefined) throw missing(place);
    await this.#checkSums(this.#chunk(column, rowGroup));
    try {
      const data = await this.#envelope.readColumnChunk(reader.getSchema(), chunk);
      checkPages(data, this.#chunk(column, rowGroup), place);
      return data;
    } catch (error) {
      throw problem(error, place);
    }
  }

  /** Verifies the pages' checksums, which the library does not. */
  async #checkSums({ start, bytes }: ColumnChunkInfo): Promise<void> {
    const { file, rowGroups } = this.info;
    const handle = await openRandomAccess(file);
    try {
      const sums = new PageSums(file, handle, rowGroups);
      await sums.check(await readExactly(handle, file, start, bytes), start);
    } catch (error) {
      throw problem(error, { file });
    } finally {
      await closeReader(handle);
    }
  }

  #chunk(column: string, rowGroup: number): ColumnChunkInfo {
    const chunk = this.#footer.rowGroups[rowGroup].columns.find((candidate) => candidate.column === column);
    if (chunk === undefined) throw missing({ file: this.info.file, rowGroup, column });
    return chunk;
  }

  /** Refuses a column chunk before any of it is decoded. */
  async #checkChunk(column: string, rowGroup: number): Promise<void> {
    const { file } = this.info;
    const chunk = this.#chunk(column, rowGroup);
    const odd = chunk.encodings.find((encoding) => !readableEncodings.includes(encoding));
    if (!readableCodecs.includes(chunk.codec))
      throw refusal(`codec ${chunk.codec}`, { file, rowGroup, column });
    if (odd !== undefined) throw refusal(`encoding ${odd}`, { file, rowGroup, column });
    if (
      chunk.encodings.includes('plain_dictionary') &&
      (await dictionarySize(file, chunk)) > LARGEST_DICTIONARY
    ) {
      throw refusal(`a dictionary of more than ${LARGEST_DICTIONARY} values`, { file, rowGroup, column });
    }
  }
}

interface Place {
  readonly file: string;
  readonly rowGroup?: number;
  readonly column?: string;
}

function missing(place: Place): DataError {
  return new DataError('the column is missing in this row group', { phase: 'read', ...place });
}

function refusal(what: string, place: Place): DataError {
  return new DataError(`the backend parquetjs-lite cannot read ${what}`, {
    phase: 'read',
    ...place,
    advice: 'Use the backend parquet-wasm',
  });
}

/**
 * Refuses pages that the library would misread: it trusts the footer's codec, and looks up values of plain
 * pages in a chunk's dictionary too.
 */
function checkPages(data: ColumnChunkData, chunk: ColumnChunkInfo, place: Place): void {
  const isPacked = data.pageHeaders.some((page) => page.compressed_page_size !== page.uncompressed_page_size);
  if (chunk.codec === 'uncompressed' && isPacked)
    throw new DataError('the data are damaged: pages are compressed, and the footer says that they are not', {
      phase: 'read',
      ...place,
    });
  const encodings = new Set(
    data.pageHeaders.map((page) => (page.data_page_header ?? page.data_page_header_v2)?.encoding),
  );
  const mixed =
    encodings.size > 1 ||
    (chunk.encodings.includes('plain_dictionary') && !encodings.has(plainDictionary) && encodings.size > 0);
  const unknown = [...encodings].find((encoding) => encoding !== plain && encoding !== plainDictionary);
  if (mixed) throw refusal('a column that begins with a dictionary and goes on without', place);
  if (unknown !== undefined) throw refusal(`pages of encoding number ${unknown}`, place);
}

/**
 * Number of values in a chunk's dictionary page: PageHeader { 1: type, 7: DictionaryPageHeader { 1: values }
 * }.
 */
async function dictionarySize(file: string, chunk: ColumnChunkInfo): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const bytes = await readExactly(handle, file, chunk.start, Math.min(chunk.bytes, 1024));
    checkThriftShape(bytes);
    const header = deserializeTCompactProtocol({
      view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      offset: 0,
    });
    return Number(header.field_7?.field_1 ?? 0);
  } catch (error) {
    throw problem(error, { file, column: chunk.column });
  } finally {
    await closeReader(handle);
  }
}

/** An error that names the place. The library throws strings and errors of many kinds. */
function problem(error: unknown, place: Place): Error {
  if (error instanceof FactorFlowError) return error;
  if (errorCode(error) !== undefined) return fileProblem(error, 'read', place.file);
  return new DataError(`parquetjs-lite cannot read the data: ${messageOf(error)}`, {
    phase: 'read',
    ...place,
    cause: error,
    advice: 'Try the backend parquet-wasm',
  });
}
