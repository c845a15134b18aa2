import { DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { publicPath, throwIfAborted } from '../../engine/errors.ts';
import type { Bound, Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import type { JsonObject } from '../../engine/json.ts';
import { closeReader } from '../../engine/regular-file.ts';
import type { Source, SourceParts, SourceStatistics, ValueNeeds } from '../../engine/stream/operator.ts';
import type { FileStamp, ReadSplit, SourceSplit, SourceSplits } from '../../engine/stream/split.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { commonSchema, pruneSchema, withPartitions } from '../files/common-schema.ts';
import { type DatasetFiles, resolveDataset } from '../files/dataset-path.ts';
import { fileStamp, type ReadingRun, requireStamp, requireUnchanged } from '../files/file-stamp.ts';
import { parquetExtensions } from '../files/format-names.ts';
import { type OpenedFile, Opening } from '../files/opening.ts';
import { isUrl, pathList } from '../files/path-kinds.ts';
import { otherWork } from '../files/stored-bytes.ts';
import {
  checkFolderColumns,
  constantsOf,
  type FolderColumns,
  filesWithin,
  folderCondition,
  folderParts,
} from '../folders/folder-columns.ts';
import { UrlVersions } from '../http/url-versions.ts';
import type { ParquetBackendName, ParquetFileInfo } from './backend.ts';
import { parquetBackend } from './backends.ts';
import { boundText, mayMatch, hasPageBounds, pagesWithin } from './pages/pages-within.ts';
import { cutRowGroup } from './pages/cut-row-group.ts';
import { hasPlainPages } from './pages/read-pages.ts';
import { openRandomAccess } from './random-access.ts';
import { readRowGroups, type RowGroupRequest } from './read-row-groups.ts';

export interface ParquetSourceOptions {
  readonly backend?: ParquetBackendName;
  /** Most rows of a batch. Default 131,072. */
  readonly batchSize?: number;
  /** Columns from the names of folders (`year=1999`). Default: 'infer'. */
  readonly partitions?: FolderColumns;
}

/** A resolved data set: files with their footers, and the schema they share. */
interface Opened {
  readonly files: readonly (OpenedFile & { readonly info: ParquetFileInfo })[];
  readonly partitionColumns: DatasetFiles['partitionColumns'];
  readonly schema: Schema;
  readonly versions: UrlVersions;
}

const FOOTERS_AT_ONCE = 4;

/**
 * Parquet files as a Source: a file, a folder, a glob, or several of these (see resolveDataset). Files are
 * read one after the other in the order of their paths, row groups in order, a batch at a time; footers are
 * read once.
 */
export class ParquetSource implements Source {
  readonly name = 'parquet-source';
  readonly phase = 'read';
  readonly replayable = true;
  readonly #paths: readonly string[];
  readonly #options: ParquetSourceOptions;
  /** Conditions on columns that are in the files. */
  #bounds: readonly Bound[] = [];
  /** Condition on columns that are in the names of folders. */
  #folders: Expression | undefined;
  #opening = new Opening(() => this.#openFooters());

  constructor(paths: string | readonly string[], options: ParquetSourceOptions = {}) {
    this.#paths = pathList(paths);
    this.#options = options;
    checkFolderColumns(options.partitions);
  }

  /**
   * The same files without the folders that the predicate excludes by name, and without the row groups and
   * pages that statistics show to be outside the bounds. Takes effect when the files are opened.
   */
  within(bounds: readonly Bound[], predicate?: Expression): ParquetSource {
    const columns = this.#opening.latest?.partitionColumns ?? [];
    const source = new ParquetSource(this.#paths, this.#options);
    source.#bounds = bounds.filter(({ column }) => !columns.some(({ name }) => name === column));
    source.#folders = folderCondition(predicate, columns);
    source.#opening = this.#opening;
    return source;
  }

  describe(): JsonObject {
    const { backend, partitions } = this.#options;
    const within = this.#bounds.map(boundText);
    return {
      paths: this.#paths.map(publicPath),
      ...(backend && { backend }),
      ...(partitions && { partitions }),
      ...(this.#folders && { folders: print(this.#folders) }),
      ...(within.length > 0 && { within }),
    };
  }

  async schema(): Promise<Schema> {
    return (await this.#opening.get()).schema;
  }

  async statistics(run: ReadingRun): Promise<SourceStatistics> {
    const { files } = await this.#opening.of(run);
    const total = (of: (info: ParquetFileInfo) => number) =>
      files.reduce((sum, { info }) => sum + of(info), 0);
    return { rows: total((info) => info.rows), bytes: total((info) => info.bytes), files: files.length };
  }

  async parts(columns?: readonly string[]): Promise<readonly SourceParts[]> {
    const opened = await this.#opening.get();
    const files = this.#filesWithin(opened);
    const folders =
      this.#folders === undefined
        ? []
        : [
            folderParts(
              opened.files.map(({ file }) => file),
              files.map(({ file }) => file),
            ),
          ];
    if (folders.length > 0 && (this.#bounds.length === 0 || files.length === 0)) return folders;
    const found = await this.#within(columns);
    const total = (of: (one: RequestsWithin) => number) => found.reduce((sum, one) => sum + of(one), 0);
    const all = files.reduce((sum, { info }) => sum + info.rowGroups.length, 0);
    const read = total(({ requests }) => new Set(requests.flatMap(({ rowGroups = [] }) => rowGroups)).size);
    const pages = { read: total((one) => one.pages.read), all: total((one) => one.pages.all) };
    const by = 'statistics';
    return [
      ...folders,
      { unit: 'row group', by, read, all },
      ...(pages.all > 0 ? [{ unit: 'page', by, ...pages } as const] : []),
    ];
  }

  /** The files' footers, in reading order. */
  async files(): Promise<readonly ParquetFileInfo[]> {
    return (await this.#opening.get()).files.map(({ info }) => info);
  }

  async execute(run: ReadingRun, columns?: readonly string[], needs?: ValueNeeds): Promise<BatchStream> {
    await this.#opening.of(run);
    const schema = pruneSchema(await this.schema(), columns);
    const rows = this.#run(await this.requests(columns, needs), schema, run);
    return batchStream(schema, this.#opening.reading(rows));
  }

  /** Splits files on disk by row groups. Files on a web server are one stream. */
  async splits(
    run: ReadingRun,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
    targetBytes: number,
  ): Promise<SourceSplits | undefined> {
    if (this.#paths.some(isUrl)) return undefined;
    await this.#opening.of(run);
    const opened = new Map((await this.#opening.get()).files.map((one) => [one.info.file, one]));
    const requests = await this.requests(columns, needs);
    const splits: SourceSplit[] = [];
    for (const request of requests) {
      const { info, stamp } = opened.get(request.file) as Opened['files'][number];
      splits.push(
        ...(await parquetSplits(request, info, targetBytes)).map((split) => ({
          ...split,
          ...(stamp && { stamp }),
        })),
      );
    }
    const schema = pruneSchema(await this.schema(), columns);
    const infos = [...opened.values()].map(({ info }) => info);
    const files = [...opened.values()].map(({ file, stamp }) => ({ file: file.file, stamp }));
    const whenRead = () => this.#opening.check(() => requireUnchanged(run, files));
    return { schema, splits, mostValues: mostValues(infos, schema), whenRead };
  }

  /**
   * The work of `execute` as plain JSON, for threads that call `readRowGroups` for some requests or row
   * groups. One request a file, or several if ranges of rows are left out; none for a file without rows
   * within the bounds.
   */
  async requests(columns?: readonly string[], needs?: ValueNeeds): Promise<RowGroupRequest[]> {
    const found = (await this.#within(columns)).flatMap(({ requests }) => requests);
    const { ids } = needs ?? {};
    return ids === undefined ? found : found.map((request) => ({ ...request, ids }));
  }

  async #within(columns: readonly string[] | undefined): Promise<RequestsWithin[]> {
    const opened = await this.#opening.get();
    const { partitionColumns, schema, versions } = opened;
    const { backend, batchSize } = this.#options;
    const names = pruneSchema(schema, columns).fields.map((field) => field.name);
    const found: RequestsWithin[] = [];
    for (const { file, info } of this.#filesWithin(opened)) {
      const whole = {
        file: file.file,
        columns: names,
        ...(batchSize !== undefined && { batchSize }),
        ...(backend !== undefined && { backend }),
        ...(partitionColumns.length > 0 && { constants: constantsOf(partitionColumns, file.partitions) }),
      };
      found.push(await requestsWithin(whole, info, this.#bounds, versions));
    }
    return found;
  }

  #filesWithin({ files, partitionColumns }: Opened): Opened['files'] {
    if (this.#folders === undefined) return files;
    const kept = new Set(
      filesWithin(
        files.map(({ file }) => file),
        partitionColumns,
        this.#folders,
      ),
    );
    return files.filter(({ file }) => kept.has(file));
  }

  async *#run(
    requests: readonly RowGroupRequest[],
    schema: Schema,
    run: ReadingRun,
  ): AsyncGenerator<RecordBatch> {
    const { signal } = run;
    const { files: opened, versions } = await this.#opening.get();
    const stamps = new Map(opened.map(({ file, stamp }) => [file.file, stamp]));
    for (const request of requests) {
      throwIfAborted(signal, 'read');
      requireStamp(request.file, stamps.get(request.file));
      await otherWork();
      for await (const batch of readRowGroups(request, schema, { versions })) {
        throwIfAborted(signal, 'read');
        yield batch;
      }
    }
    throwIfAborted(signal, 'read');
    const files = [...stamps].map(([file, stamp]) => ({ file, stamp }));
    requireUnchanged(run, files);
  }

  async #openFooters(): Promise<Opened> {
    const { files, partitionColumns } = await resolveDataset(this.#paths, {
      extensions: parquetExtensions,
      partitions: this.#options.partitions,
    });
    const backend = await parquetBackend(this.#options.backend);
    const versions = new UrlVersions();
    const infos: ParquetFileInfo[] = Array(files.length);
    const stamps: (FileStamp | undefined)[] = Array(files.length);
    const indices = files.keys();
    const openSome = async () => {
      for (const index of indices) {
        await otherWork();
        stamps[index] = fileStamp(files[index].file, false);
        const reader = await backend.open(files[index].file, undefined, versions);
        infos[index] = reader.info;
        await reader.close();
      }
    };
    await Promise.all(Array.from({ length: Math.min(FOOTERS_AT_ONCE, files.length) }, openSome));
    return {
      files: files.map((file, index) => ({ file, info: infos[index], stamp: stamps[index] })),
      partitionColumns,
      schema: withPartitions(commonSchema(infos), partitionColumns, infos[0].file),
      versions,
    };
  }
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

/** Requests for the rows of a file within bounds, and page counts if pages are left out. */
interface RequestsWithin {
  readonly requests: readonly RowGroupRequest[];
  /** Pages read, and all pages, of the row groups that are read in part. */
  readonly pages: { readonly read: number; readonly all: number };
}

/**
 * Leaves out row groups that the footer shows to be outside the bounds, and of the others the pages that the
 * page index shows to be outside. Consecutive whole row groups become one request; requests keep the order of
 * the file.
 */
async function requestsWithin(
  whole: RowGroupRequest,
  info: ParquetFileInfo,
  bounds: readonly Bound[],
  versions?: UrlVersions,
): Promise<RequestsWithin> {
  const groups = [...info.rowGroups.keys()].filter(
    (group) => info.rowGroups[group].rows > 0 && mayMatch(info.rowGroups[group], bounds),
  );
  const none = { read: 0, all: 0 };
  if (!groups.some((group) => hasPageBounds(info, group, bounds)))
    return { requests: groups.length === 0 ? [] : [{ ...whole, rowGroups: groups }], pages: none };

  const names = info.schema.fields.map(({ name }) => name).filter((name) => whole.columns?.includes(name));
  const requests: RowGroupRequest[] = [];
  const pages = { ...none };
  let together: number[] = [];
  const flush = () => {
    if (together.length > 0) requests.push({ ...whole, rowGroups: together });
    together = [];
  };
  const handle = await openRandomAccess(info.file, false, versions);
  try {
    for (const group of groups) {
      const found = hasPageBounds(info, group, bounds)
        ? await pagesWithin({ file: info.file, handle }, info, group, bounds, names)
        : undefined;
      if (found === undefined) {
        together.push(group);
        continue;
      }
      flush();
      requests.push(...found.ranges.map((range) => ({ ...whole, rowGroups: [group], range })));
      pages.read += found.read;
      pages.all += found.all;
    }
  } finally {
    await closeReader(handle);
  }
  flush();
  return { requests, pages };
}

const PARQUET_SPLIT = 'parquet';

/**
 * Bytes that a row is assumed to take at least when ranges are grouped. The task that reads a group holds the
 * chunks of all its ranges, so their number must be limited.
 */
const RANGE_BYTES = 4;

type ParquetSplit = SourceSplit & { readonly request: RowGroupRequest };

/**
 * Cuts a request for row groups of one file into splits. Neighbouring row groups are joined up to the target.
 * A larger row group is a split of its own, or several if its pages can be read separately.
 */
async function parquetSplits(
  request: RowGroupRequest,
  info: ParquetFileInfo,
  targetBytes: number,
): Promise<ParquetSplit[]> {
  const { file, rowGroups } = info;
  const splits: ParquetSplit[] = [];
  const stored = info.schema.fields
    .map(({ name }) => name)
    .filter((name) => request.columns?.includes(name) ?? true);
  let groups: number[] = [];
  let [bytes, rows] = [0, 0];
  const cut = () => {
    if (groups.length > 0)
      splits.push({ format: PARQUET_SPLIT, file, bytes, rows, request: { ...request, rowGroups: groups } });
    [groups, bytes, rows] = [[], 0, 0];
  };
  for (const number of request.rowGroups ?? rowGroups.keys()) {
    const group = rowGroups[number];
    // A nested column is stored as several columns.
    const wanted = group.columns.filter(
      ({ column }) =>
        request.columns?.some((name) => column === name || column.startsWith(`${name}.`)) ?? true,
    );
    // The size of a text column is counted after decoding: a text that is stored once is decoded for each of
    // its rows.
    const size = wanted.reduce((sum, column) => sum + Math.max(column.bytes, column.textBytes ?? 0), 0);
    const ranges = request.range
      ? [request.range]
      : hasPlainPages(info, number, stored)
        ? await cutRowGroup(file, group, stored)
        : undefined;
    if (ranges !== undefined || bytes + size > targetBytes) cut();
    if (ranges !== undefined) {
      splits.push(
        ...ranges.map((range) => ({
          format: PARQUET_SPLIT,
          file,
          bytes: Math.max(Math.ceil((size * range.rows) / group.rows), RANGE_BYTES * range.rows),
          rows: range.rows,
          request: { ...request, rowGroups: [number], range },
        })),
      );
      continue;
    }
    groups.push(number);
    bytes += size;
    rows += group.rows;
  }
  cut();
  return splits;
}

/** See ReadSplit. */
export const readParquetSplit: ReadSplit = async function* (split, schema, { signal, borrowed, waits }) {
  for await (const batch of readRowGroups((split as ParquetSplit).request, schema, { borrowed, waits })) {
    throwIfAborted(signal, 'read');
    yield batch;
  }
  return undefined;
};
