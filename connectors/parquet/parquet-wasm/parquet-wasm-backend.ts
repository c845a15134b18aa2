import { Schema } from 'apache-arrow';
import { closeReader } from '../../../engine/regular-file.ts';
import { DataError } from '../../../engine/errors.ts';
import { fileProblem } from '../../files/file-problem.ts';
import { isUrl } from '../../files/path-kinds.ts';
import type { UrlVersions } from '../../http/url-versions.ts';
import type {
  LocatedBatch,
  ParquetBackend,
  ParquetFileInfo,
  ParquetFileReader,
  ReadOptions,
} from '../backend.ts';
import { readFooterOf } from '../footer-file.ts';
import type { Footer } from '../footer.ts';
import { footerSchema, storedAsIs } from '../pages/footer-schema.ts';
import { requireShortIdsIn } from '../pages/long-ids.ts';
import { PageProblem } from '../pages/page-problem.ts';
import { hasPlainPages, type PageFile, readPages } from '../pages/read-pages.ts';
import { type FetchCounter, openRandomAccess } from '../random-access.ts';
import { createWasmWriter } from './parquet-wasm-writer.ts';
import type { WasmDecoder } from './wasm-decoder.ts';

/**
 * The default backend. Numbers in common pages are read page by page. Everything else is read by a decoder
 * for all codecs and encodings, loaded at its first use.
 */
export const parquetWasmBackend: ParquetBackend = {
  name: 'parquet-wasm',
  open: openFile,
  create: createWasmWriter,
};

async function openFile(file: string, waits?: boolean, versions?: UrlVersions): Promise<FileReader> {
  const handle = await openRandomAccess(file, waits, versions);
  const counter: FetchCounter = { fetches: 0, bytes: 0 };
  try {
    const footer = await readFooterOf(handle, file);
    const opened = { file, handle, footer, counter };
    const schema = isUrl(file) ? undefined : footerSchema(footer);
    if (schema !== undefined)
      return new FileReader(
        opened,
        withPlainColumns(
          { file, bytes: footer.fileBytes, rows: footer.rows, schema, rowGroups: footer.rowGroups },
          footer,
        ),
      );
    const decoder = await openDecoder(opened);
    return new FileReader(
      opened,
      isUrl(file) ? decoder.info : withPlainColumns(decoder.info, footer),
      decoder,
    );
  } catch (error) {
    await closeReader(handle);
    throw fileProblem(error, 'read', file);
  }
}

function withPlainColumns(info: ParquetFileInfo, footer: Footer): ParquetFileInfo {
  return {
    ...info,
    plainColumns: info.schema.fields
      .filter(({ name, type }) => storedAsIs(footer, name, type))
      .map(({ name }) => name),
  };
}

async function openDecoder(file: PageFile): Promise<WasmDecoder> {
  return (await import('./wasm-decoder.ts')).openDecoder(file);
}

class FileReader implements ParquetFileReader {
  readonly info: ParquetFileInfo;
  readonly counter: FetchCounter;
  readonly #opened: PageFile;
  #decoder: WasmDecoder | undefined;
  #closed = false;

  constructor(opened: PageFile, info: ParquetFileInfo, decoder?: WasmDecoder) {
    [this.#opened, this.info, this.counter, this.#decoder] = [opened, info, opened.counter, decoder];
  }

  async *read(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    const { rowGroups, schema: all } = this.info;
    const schema = new Schema(all.fields.filter(({ name }) => options.columns?.includes(name) ?? true));
    for (const rowGroup of options.rowGroups ?? rowGroups.keys()) {
      if (
        schema.fields.length === 0 ||
        !hasPlainPages(
          this.info,
          rowGroup,
          schema.fields.map(({ name }) => name),
        )
      ) {
        await this.#requireShortIds(rowGroup, schema, options);
        yield* this.#decode({ ...options, rowGroups: [rowGroup] });
        continue;
      }
      const { rows, firstRow } = rowGroups[rowGroup];
      const range = options.range ?? { from: 0, rows, starts: {} };
      let done = range.from;
      try {
        for await (const batch of readPages(this.#opened, rowGroup, range, schema, options)) {
          yield { batch, rowGroup, firstRow: firstRow + done };
          done += batch.numRows;
        }
      } catch (error) {
        if (!(error instanceof PageProblem)) throw error;
        yield* this.#decodeFrom(error, {
          ...options,
          rowGroups: [rowGroup],
          range: { from: done, rows: range.from + range.rows - done, starts: {} },
        });
      }
    }
  }

  /** See requireShortIdsIn; for files on a web server, pages are read once. */
  async #requireShortIds(rowGroup: number, schema: Schema, { ids = [] }: ReadOptions): Promise<void> {
    if (this.info.plainColumns === undefined) return;
    const columns = new Schema(schema.fields.filter(({ name }) => ids.includes(name)));
    await requireShortIdsIn(this.#opened, rowGroup, columns);
  }

  /** Reads the rest of a row group with the decoder. If that fails too, the error names the column. */
  async *#decodeFrom({ column, message }: PageProblem, options: ReadOptions): AsyncGenerator<LocatedBatch> {
    try {
      yield* this.#decode(options);
    } catch (error) {
      if (!(error instanceof DataError) || error.details.column !== undefined) throw error;
      throw new DataError(`${error.summary} (${message})`, { ...error.details, column });
    }
  }

  async *#decode(options: ReadOptions): AsyncGenerator<LocatedBatch> {
    this.#decoder ??= await openDecoder(this.#opened);
    yield* this.#decoder.read(options);
  }

  async verify(): Promise<void> {
    await this.#opened.handle.verify?.();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#decoder?.close();
    await closeReader(this.#opened.handle);
  }
}
