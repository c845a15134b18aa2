import { checkOptions } from '../../api/check-options.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { type Id, isId } from '../../engine/keys/find-id.ts';
import { ItemNames } from '../../operators/serving/item-names.ts';
import { addressOf, type Fetch, problem, RemoteFile } from '../remote-file.ts';
import { ArrowNames } from './arrow-names.ts';
import { CsvNames } from './csv-names.ts';
import type { ItemRow, NamesColumns, NamesFile } from './names-file.ts';
import { ParquetNames } from './parquet-names.ts';

export type { ItemRow } from './names-file.ts';

export interface OpenNamesOptions {
  /** Columns of the file. Defaults: `id` and `name`, and no attributes. */
  readonly id?: string;
  readonly name?: string;
  readonly attributes?: readonly string[];
  /** See OpenModelOptions. */
  readonly fetch?: Fetch;
  readonly signal?: AbortSignal;
}

/**
 * Opens names and attributes of items on a web server. Of an Arrow IPC file without compression, and of a
 * Parquet file (codec snappy or none), only the parts with the rows that are asked for are read, by HTTP
 * ranges; their rows ascend by id. A CSV or TSV file of at most 64 MiB is read as a whole. Throws DataError
 * for a file that is missing, damaged, compressed or without the columns; `rows` does so where it meets ids
 * that do not ascend.
 */
export async function openNames(url: string | URL, options: OpenNamesOptions = {}): Promise<RemoteNames> {
  const known = ['id', 'name', 'attributes', 'fetch', 'signal'] as const;
  checkOptions('openNames', options, known, "{ id: 'item', name: 'title' }");
  const address = addressOf('openNames', url, "openNames('films.arrow')");
  const { id = 'id', name = 'name', attributes = [], signal } = options;
  const { fetch = (asked, init) => globalThis.fetch(asked, init) } = options;
  const file = await RemoteFile.open(address, { fetch, signal });
  if ('missing' in file) throw problem(address, `there is no file at this URL: ${file.missing}`);
  const names = await openFile(file, { id, name, attributes });
  file.forgetSignal();
  return new RemoteNames(names);
}

/** Parquet files are known by their last bytes, texts by the name; other files are read as Arrow. */
async function openFile(file: RemoteFile, columns: NamesColumns): Promise<NamesFile> {
  const end = await file.slice(Math.max(0, file.byteLength - 4));
  if (new TextDecoder('latin1').decode(end) === 'PAR1') return ParquetNames.open(file, columns);
  if (/\.(csv|tsv)$/i.test(new URL(file.url).pathname)) return CsvNames.open(file, columns);
  return ArrowNames.open(file, columns);
}

/** Names and attributes of items in a file on a web server, of which rows are read as they are asked for. */
export class RemoteNames {
  readonly #file: NamesFile;

  /** @internal */
  constructor(file: NamesFile) {
    this.#file = file;
  }

  /** Number of rows. */
  get size(): number {
    return this.#file.size;
  }

  /** The rows of these ids, in their order, without ids that the file does not have. */
  async rows(ids: readonly Id[], { signal }: { readonly signal?: AbortSignal } = {}): Promise<ItemRow[]> {
    return this.#near(ids, () => this.size >> 1, signal);
  }

  /** `near` gives a row at or near which an id probably is. @internal */
  async names(
    ids: readonly Id[],
    near: (id: Id) => number,
    signal: AbortSignal | undefined,
  ): Promise<ItemNames> {
    const found = await this.#near(ids, near, signal);
    return new ItemNames(found.map(({ id, name }) => [id, name]));
  }

  async #near(
    ids: readonly Id[],
    near: (id: Id) => number,
    signal: AbortSignal | undefined,
  ): Promise<ItemRow[]> {
    if (!Array.isArray(ids) || !ids.every((id) => isId(id)))
      throw new UsageError(`rows takes a list of ids, got ${shown(ids)}`);
    const found = await this.#file.find(ids, near, signal);
    return found.filter((row) => row !== undefined);
  }
}
