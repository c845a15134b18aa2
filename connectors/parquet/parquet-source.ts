import { DataType, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import type { Bound } from '../../engine/expressions/expression.ts';
import type { JsonObject } from '../../engine/json.ts';
import { closeReader } from '../../engine/regular-file.ts';
import type { SourceParts, SourceStatistics, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplitOptions } from '../../engine/stream/split.ts';
import { setOrigin } from '../../engine/stream/stream.ts';
import { pruneSchema } from '../files/common-schema.ts';
import {
  type FileFormat,
  FileSetSource,
  type FileSplit,
  fileSplitReader,
  type KnownFile,
  type OpenFile,
  readOpenFile,
} from '../files/file-set-source.ts';
import type { ReadingRun } from '../files/file-stamp.ts';
import { fileKinds } from '../files/format-names.ts';
import { openRandomAccess } from '../files/random-access.ts';
import { type ConstantColumn, type FolderColumns, partitionField } from '../folders/folder-columns.ts';
import type { UrlVersions } from '../http/request.ts';
import type { LocatedBatch, ParquetBackendName, ParquetFileInfo, ParquetFileReader } from './backend.ts';
import { parquetBackend } from './backends.ts';
import { cutRowGroup, RANGE_ROWS, type RowRange } from './pages/cut-row-group.ts';
import { boundText, hasPageBounds, mayMatch, pagesWithin } from './pages/pages-within.ts';
import { hasPlainPages } from './pages/read-pages.ts';

export interface ParquetSourceOptions {
  readonly backend?: ParquetBackendName;
  /** Most rows of a batch. Default 131,072. */
  readonly batchSize?: number;
  /** Columns from the names of folders (`year=1999`). Default: 'infer'. */
  readonly partitions?: FolderColumns;
}

const FOOTERS_AT_ONCE = 4;

/**
 * Parquet files as a Source: a file, a folder, a glob, or several of these (see resolveDataset). Files are
 * read one after the other in the order of their paths, row groups in order, a batch at a time; footers are
 * read once. `within` leaves out row groups and pages that statistics show to be outside the bounds.
 */
export class ParquetSource extends FileSetSource<ParquetFileInfo> {
  readonly name = 'parquet-source';
  readonly phase = 'read';
  readonly #options: ParquetSourceOptions;
  /** Conditions on columns that are in the files. */
  #bounds: readonly Bound[] = [];

  constructor(paths: string | readonly string[], options: ParquetSourceOptions = {}) {
    super(
      paths,
      parquetFormat(options, () => this.#bounds),
      options.partitions,
    );
    this.#options = options;
  }

  protected override again(bounds: readonly Bound[]): ParquetSource {
    const source = new ParquetSource(this.paths, this.#options);
    source.#bounds = bounds;
    return source;
  }

  override describe(): JsonObject {
    const { backend } = this.#options;
    const within = this.#bounds.map(boundText);
    const { paths, ...folders } = super.describe();
    return {
      paths,
      ...(backend && { backend }),
      ...folders,
      ...(within.length > 0 && { within }),
    };
  }

  async statistics(run: ReadingRun): Promise<SourceStatistics> {
    const files = await this.layouts(run);
    const total = (of: (info: ParquetFileInfo) => number) => files.reduce((sum, info) => sum + of(info), 0);
    return { rows: total(({ rows }) => rows), bytes: total(({ bytes }) => bytes), files: files.length };
  }

  override async parts(columns?: readonly string[]): Promise<readonly SourceParts[]> {
    const folders = await super.parts();
    const files = await this.known(columns);
    if (folders.length > 0 && (this.#bounds.length === 0 || files.length === 0)) return folders;
    const sums = { read: 0, all: 0 };
    const pages = { read: 0, all: 0 };
    for (const known of files) {
      const found = await rowsWithin(known, this.#bounds);
      sums.all += known.layout.rowGroups.length;
      sums.read += new Set(found.rows.flatMap(({ rowGroups }) => rowGroups)).size;
      pages.read += found.pages.read;
      pages.all += found.pages.all;
    }
    const by = 'statistics';
    return [
      ...folders,
      { unit: 'row group', by, ...sums },
      ...(pages.all > 0 ? [{ unit: 'page', by, ...pages } as const] : []),
    ];
  }

  /** The files' footers, in reading order. */
  files(): Promise<readonly ParquetFileInfo[]> {
    return this.layouts();
  }

  /**
   * The work of `execute` as plain JSON, for threads that call `readRowGroups` for some requests or row
   * groups. One request a file, or several if ranges of rows are left out; none for a file without rows
   * within the bounds.
   */
  async requests(columns?: readonly string[], needs?: ValueNeeds): Promise<RowGroupRequest[]> {
    const requests: RowGroupRequest[] = [];
    for (const known of await this.known(columns, needs)) {
      const { file, schema, constants } = known;
      const { ids } = needs ?? {};
      const whole = {
        ...settingsOf(this.#options),
        file,
        columns: schema.fields.map(({ name }) => name),
        ...(ids && { ids }),
        ...(constants.length > 0 && { constants }),
      };
      const { rows } = await rowsWithin(known, this.#bounds);
      requests.push(...rows.map((some) => ({ ...whole, ...some })));
    }
    return requests;
  }
}

/** The options that a reader in another thread needs, without those that are not given. */
function settingsOf({ backend, batchSize }: ParquetSourceOptions): ReaderSettings {
  return { ...(backend !== undefined && { backend }), ...(batchSize !== undefined && { batchSize }) };
}

function parquetFormat(
  options: ParquetSourceOptions,
  bounds: () => readonly Bound[],
): FileFormat<ParquetFileInfo> {
  const settings = settingsOf(options);
  return {
    name: 'parquet',
    extensions: fileKinds.parquet.extensions,
    opensAtOnce: FOOTERS_AT_ONCE,
    takesBounds: true,
    open: (file, versions) => OpenParquet.open({ ...settings, file }, undefined, versions),
    reopen: async (known) => {
      const { rows } = await rowsWithin(known, bounds());
      const ids = known.needs?.ids;
      return OpenParquet.open({ ...settings, file: known.file, ids }, rows, known.versions);
    },
    cut: async (known, targetBytes) => {
      const { rows } = await rowsWithin(known, bounds());
      const ids = known.needs?.ids;
      const parts = await partsOf(known, rows, targetBytes);
      return parts.map(({ part, ...sizes }) => ({ ...sizes, ...settings, ...(ids && { ids }), part }));
    },
    mostValues,
  };
}

/** Largest number of distinct values, including null, that each integer column can have by its statistics. */
function mostValues(files: readonly ParquetFileInfo[], { fields }: Schema): Record<string, number> {
  const most: Record<string, number> = {};
  for (const { name, type } of fields) {
    if (!DataType.isInt(type)) continue;
    let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const { columns } of files.flatMap(({ rowGroups }) => rowGroups)) {
      const own = columns.find(({ column }) => column === name)?.statistics;
      // Without statistics of a row group the bound is NaN, and no number is returned for the column.
      least = Math.min(least, Number(own?.min ?? Number.NaN));
      greatest = Math.max(greatest, Number(own?.max ?? Number.NaN));
    }
    if (greatest >= least) most[name] = greatest - least + 2;
  }
  return most;
}

/** Rows of a file within bounds, and page counts if pages are left out. */
interface RowsWithin {
  readonly rows: readonly RowsOfGroups[];
  /** Pages read, and all pages, of the row groups that are read in part. */
  readonly pages: { readonly read: number; readonly all: number };
}

/** The wanted columns that are in the file, in its order. */
function storedNames({ layout, schema }: KnownFile<ParquetFileInfo>): string[] {
  const wanted = new Set(schema.fields.map(({ name }) => name));
  return layout.schema.fields.map(({ name }) => name).filter((name) => wanted.has(name));
}

/**
 * Leaves out row groups that the footer shows to be outside the bounds, and of the others the pages that the
 * page index shows to be outside. Consecutive whole row groups are read together; all keep the order of the
 * file.
 */
async function rowsWithin(known: KnownFile<ParquetFileInfo>, bounds: readonly Bound[]): Promise<RowsWithin> {
  const { file, layout: info, versions } = known;
  const groups = [...info.rowGroups.keys()].filter(
    (group) => info.rowGroups[group].rows > 0 && mayMatch(info.rowGroups[group], bounds),
  );
  const pages = { read: 0, all: 0 };
  if (!groups.some((group) => hasPageBounds(info, group, bounds)))
    return { rows: groups.length === 0 ? [] : [{ rowGroups: groups }], pages };

  const names = storedNames(known);
  const rows: RowsOfGroups[] = [];
  let together: number[] | undefined;
  const handle = await openRandomAccess(file, false, versions);
  try {
    for (const group of groups) {
      const found = hasPageBounds(info, group, bounds)
        ? await pagesWithin({ file, handle }, info, group, bounds, names)
        : undefined;
      if (found !== undefined) {
        rows.push(...found.ranges.map((range) => ({ rowGroups: [group], range })));
        pages.read += found.read;
        pages.all += found.all;
        together = undefined;
      } else if (together === undefined) rows.push({ rowGroups: (together = [group]) });
      else together.push(group);
    }
  } finally {
    await closeReader(handle);
  }
  return { rows, pages };
}

/**
 * Bytes that a row is assumed to take at least when ranges are grouped. The task that reads a group holds the
 * chunks of all its ranges, so their number must be limited.
 */
const RANGE_BYTES = 4;

type ParquetPart = {
  readonly bytes: number;
  readonly rows: number;
  readonly part: RowsOfGroups;
};

/**
 * Cuts rows of one file into parts. Neighbouring row groups are joined up to the target and RANGE_ROWS. A
 * larger row group is a part of its own, or several if its pages can be read separately.
 */
async function partsOf(
  known: KnownFile<ParquetFileInfo>,
  within: readonly RowsOfGroups[],
  targetBytes: number,
): Promise<ParquetPart[]> {
  const { file, layout: info } = known;
  const stored = storedNames(known);
  const parts: ParquetPart[] = [];
  for (const { rowGroups, range } of within) {
    let groups: number[] = [];
    let [bytes, rows] = [0, 0];
    const cut = () => {
      if (groups.length > 0) parts.push({ bytes, rows, part: { rowGroups: groups } });
      [groups, bytes, rows] = [[], 0, 0];
    };
    for (const number of rowGroups) {
      const group = info.rowGroups[number];
      // A nested column is stored as several columns.
      const wanted = group.columns.filter(({ column }) =>
        stored.some((name) => column === name || column.startsWith(`${name}.`)),
      );
      // The size of a text column is counted after decoding: a text that is stored once is decoded for each of
      // its rows.
      const size = wanted.reduce((sum, column) => sum + Math.max(column.bytes, column.textBytes ?? 0), 0);
      const ranges = range
        ? [range]
        : hasPlainPages(info, number, stored)
          ? await cutRowGroup(file, group, stored)
          : undefined;
      if (ranges !== undefined || bytes + size > targetBytes || rows + group.rows > RANGE_ROWS) cut();
      for (const some of ranges ?? [])
        parts.push({
          bytes: Math.max(Math.ceil((size * some.rows) / group.rows), RANGE_BYTES * some.rows),
          rows: some.rows,
          part: { rowGroups: [number], range: some },
        });
      if (ranges !== undefined) continue;
      groups.push(number);
      bytes += size;
      rows += group.rows;
    }
    cut();
  }
  return parts;
}

/** What a thread needs to read rows of this file, as plain JSON. */
type ReaderSettings = {
  readonly batchSize?: number;
  /** Columns of ids: see ValueNeeds. */
  readonly ids?: readonly string[];
  readonly backend?: ParquetBackendName;
};

/** Rows of a file: some row groups, or a range of the only one. */
type RowsOfGroups = {
  readonly rowGroups: readonly number[];
  /** Only the backend parquet-wasm reads it. Default: all rows. */
  readonly range?: RowRange;
};

/** A part of a data set as plain JSON that any thread can read. */
export type RowGroupRequest = ReaderSettings &
  Partial<RowsOfGroups> & {
    readonly file: string;
    /** Default: all, and the constants. */
    readonly columns?: readonly string[];
    /** Columns from the names of the file's folders. */
    readonly constants?: readonly ConstantColumn[];
  };

/** Rows of a batch: enough to make the overhead per batch negligible, few enough for the caches. */
export const DEFAULT_BATCH_SIZE = 1 << 17;

/** An open file, of which some rows are read. */
class OpenParquet implements OpenFile<ParquetFileInfo> {
  readonly layout: ParquetFileInfo;
  readonly countsRows = true;
  readonly #reader: ParquetFileReader;
  readonly #settings: ReaderSettings;
  readonly #rows: readonly RowsOfGroups[];

  private constructor(reader: ParquetFileReader, settings: ReaderSettings, rows?: readonly RowsOfGroups[]) {
    [this.layout, this.#reader, this.#settings] = [reader.info, reader, settings];
    this.#rows = rows ?? [{ rowGroups: [...reader.info.rowGroups.keys()] }];
  }

  /** `rows`: default all. */
  static async open(
    settings: ReaderSettings & { readonly file: string },
    rows?: readonly RowsOfGroups[],
    versions?: UrlVersions,
    waits?: boolean,
  ): Promise<OpenParquet> {
    const backend = await parquetBackend(settings.backend);
    return new OpenParquet(await backend.open(settings.file, waits, versions), settings, rows);
  }

  async *read(
    { file }: ParquetFileInfo,
    { fields }: Schema,
    { borrowed = false, needed }: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch, undefined> {
    const { batchSize = DEFAULT_BATCH_SIZE, ids } = this.#settings;
    for (const rows of this.#rows) {
      const options = {
        ...rows,
        columns: fields.map(({ name }) => name),
        batchSize,
        ids,
        borrowed,
        ...(needed && { needed }),
      };
      const batches = fields.length > 0 ? this.#reader.read(options) : rowsAlone(this.layout, options);
      for await (const { batch, rowGroup, firstRow } of batches)
        yield setOrigin(batch, { file, rowGroup, firstRow });
    }
    await this.#reader.verify?.();
    return undefined;
  }

  close(): Promise<void> {
    return this.#reader.close();
  }
}

/** See ReadSplit. */
export const readParquetSplit = fileSplitReader((split, { waits }) => {
  const { part, ...settings } = split as FileSplit & ReaderSettings & Pick<ParquetPart, 'part'>;
  return OpenParquet.open(settings, [part], undefined, waits);
});

/**
 * The rows of the request, in order; every batch has its origin. With `schema` the batches have that schema
 * (columns are matched by name). Throws DataError that names the file and the row group.
 */
export async function* readRowGroups(request: RowGroupRequest, schema?: Schema): AsyncGenerator<RecordBatch> {
  const { rowGroups, range, constants = [] } = request;
  const open = await OpenParquet.open(request, rowGroups && [{ rowGroups, range }]);
  const all = new Schema([...open.layout.schema.fields, ...constants.map(partitionField)]);
  const target = schema ?? pruneSchema(all, request.columns);
  const { signal } = new AbortController();
  yield* readOpenFile(open, open.layout, target, constants, { signal, takesFaults: false });
}

/** Batches without columns; the footer has the number of rows. */
function* rowsAlone(
  { rowGroups }: ParquetFileInfo,
  { rowGroups: wanted, batchSize, range }: RowsOfGroups & { readonly batchSize: number },
): Generator<LocatedBatch> {
  const schema = new Schema([]);
  for (const rowGroup of wanted) {
    const { rows, firstRow } = rowGroups[rowGroup];
    const end = range ? range.from + range.rows : rows;
    for (let from = range?.from ?? 0; from < end; from += batchSize) {
      const length = Math.min(batchSize, end - from);
      const data = makeData({ type: new Struct([]), length, nullCount: 0, children: [] });
      yield { batch: new RecordBatch(schema, data), rowGroup, firstRow: firstRow + from };
    }
  }
}
