import { type RecordBatch, Schema } from 'apache-arrow';
import { publicPath, throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { Message } from '../../engine/events.ts';
import type { Bound, Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Source, SourceParts, ValueNeeds } from '../../engine/stream/operator.ts';
import type {
  FileStamp,
  ReadSplit,
  ReadSplitOptions,
  SourceSplit,
  SourceSplits,
  SplitEnd,
} from '../../engine/stream/split.ts';
import { mapOrdered } from '../../engine/stream/map-ordered.ts';
import { batchStream, type BatchStream, originOf, setOrigin } from '../../engine/stream/stream.ts';
import {
  checkFolderColumns,
  type ConstantColumn,
  constantsOf,
  type FolderColumns,
  filesWithin,
  folderCondition,
  folderParts,
} from '../folders/folder-columns.ts';
import { UrlVersions } from '../http/request.ts';
import { commonSchema, conformBatch, pruneSchema, withPartitions } from './common-schema.ts';
import { type DatasetFiles, resolveDataset, type DatasetFile } from './dataset-path.ts';
import {
  type EndsWhole,
  fileStamp,
  type ReadingRun,
  reportOnce,
  requireStamp,
  requireUnchanged,
  isFresh,
  stampOfRun,
} from './file-stamp.ts';
import { inputName, isUrl, pathList, STANDARD_STREAM } from './path-kinds.ts';
import { otherWork, isPipe } from './stored-bytes.ts';

/** The columns of a file, and what was inferred about it and may be wrong. */
interface FileLayout {
  readonly schema: Schema;
  readonly notes?: readonly Message[];
}

/** One open file, or a part of it, with known columns. It can be read once. */
export interface OpenFile<Layout> {
  readonly layout: Layout;
  /** True if rows can be counted without reading a column. */
  readonly countsRows?: boolean;
  /**
   * Reads the rows of `schema`, a selection of the file's columns in their order. Every batch has its origin.
   * `takesFaults`: see ValueNeeds. Returns the end of the byte range that was read.
   */
  read(
    layout: Layout,
    schema: Schema,
    options: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch, SplitEnd | undefined>;
  close(): Promise<void>;
}

/** A file whose layout is known, and what a pass wants of it. */
export interface KnownFile<Layout> {
  readonly file: string;
  readonly layout: Layout;
  /** Bytes that are read, at most. */
  readonly size: number;
  /** The columns to read, followed by the columns whose values are in folder names. */
  readonly schema: Schema;
  readonly needs: ValueNeeds | undefined;
  readonly constants: readonly ConstantColumn[];
  readonly versions: UrlVersions;
}

/**
 * A part of a file as plain JSON, without the file's name. It contains what the format's reader of splits
 * needs and the sizes of SourceSplit.
 */
export type FilePart = JsonObject & Pick<SourceSplit, 'bytes' | 'rows' | 'range'>;

/** A file format whose files are read from beginning to end, or in parts. */
export interface FileFormat<Layout extends FileLayout> {
  /** Name of the function that reads its splits (connectors/read-split.ts). */
  readonly name: string;
  /** Extensions of such files inside folders. */
  readonly extensions: readonly string[];
  /** Number of files that are opened at the same time to learn their layouts. */
  readonly opensAtOnce: number;
  /** True if some rows outside of bounds can be left out. */
  readonly takesBounds?: boolean;
  /** Opens a file to learn its layout, and to read all of it. */
  open(file: string, versions: UrlVersions): Promise<OpenFile<Layout>>;
  /** Opens a file whose layout is known. */
  reopen(known: KnownFile<Layout>): Promise<OpenFile<Layout>>;
  /**
   * True if a file that grew had only complete rows when it was opened. Absent if files of this format must
   * not grow while they are read.
   */
  readonly endsWhole?: EndsWhole;
  /** Makes the layouts of several files agree, where possible. */
  reconcile?(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
  /**
   * Cuts a file into parts of about `targetBytes`. Each part contains everything that another thread needs to
   * read it.
   */
  cut(known: KnownFile<Layout>, targetBytes: number): Promise<readonly FilePart[]>;
  /** See SourceSplits. */
  mostValues?(layouts: readonly Layout[], schema: Schema): Readonly<Record<string, number>>;
}

/** The files, each with its own layout. */
interface Opened<Layout> {
  readonly files: readonly (OpenedFile & { readonly layout: Layout })[];
  readonly partitionColumns: DatasetFiles['partitionColumns'];
  readonly versions: UrlVersions;
}

/** The files after differences of their layouts were resolved. */
interface Agreed<Layout> extends Opened<Layout> {
  readonly schema: Schema;
}

/**
 * Files of one format as rows: a file, a folder, a glob, several of these (see resolveDataset), or "-" for
 * stdin. Stdin and other pipes can be read only once. Files are read one after the other in the order of
 * their paths.
 */
export abstract class FileSetSource<Layout extends FileLayout> implements Source {
  abstract readonly name: string;
  readonly replayable: boolean;
  protected readonly paths: readonly string[];
  readonly #format: FileFormat<Layout>;
  readonly #partitions: FolderColumns | undefined;
  /** Condition on columns that are in the names of folders. */
  #folders: Expression | undefined;
  /** Stdin or another pipe. */
  readonly #stream: string | undefined;
  #opening: Opening<Opened<Layout>>;
  /** Stdin or a pipe, opened to find its columns; its rows are then read from the same stream. */
  #standard: OpenFile<Layout> | undefined;
  #used = false;

  constructor(
    paths: string | readonly string[],
    format: FileFormat<Layout>,
    partitions: FolderColumns | undefined,
  ) {
    checkFolderColumns(partitions);
    this.#partitions = partitions;
    this.paths = pathList(paths);
    this.#stream = this.paths.find((path) => path === STANDARD_STREAM || isPipe(path));
    this.replayable = this.#stream === undefined;
    if (this.#stream !== undefined && this.paths.length > 1)
      throw new UsageError(`${this.#name} cannot be read together with files`, { phase: 'read' });
    this.#format = format;
    const stream = this.#stream;
    this.#opening = new Opening(() =>
      stream === undefined ? this.#openFiles() : this.#openStandard(stream),
    );
  }

  describe(): JsonObject {
    return {
      paths: this.paths.map(publicPath),
      ...(this.#partitions && { partitions: this.#partitions }),
      ...(this.#folders && { folders: print(this.#folders) }),
    };
  }

  /** A copy of this source with nothing opened, and these bounds of the files' own columns. */
  protected abstract again(bounds: readonly Bound[]): FileSetSource<Layout>;

  /**
   * The same files without folders that the predicate excludes by name, and without other rows that the
   * format can leave out. Takes effect when the files are opened.
   */
  within(bounds: readonly Bound[], predicate?: Expression): FileSetSource<Layout> {
    const columns = this.#opening.latest?.partitionColumns ?? [];
    const condition = folderCondition(predicate, columns);
    if (condition === undefined && !this.#format.takesBounds) return this;
    const source = this.again(bounds.filter(({ column }) => !columns.some(({ name }) => name === column)));
    source.#folders = condition;
    source.#opening = this.#opening;
    return source;
  }

  /** Numbers of all folders and of those read, if a condition on their names was given. */
  async parts(_columns?: readonly string[]): Promise<readonly SourceParts[]> {
    if (this.#folders === undefined) return [];
    const opened = await this.#opening.get();
    const files = opened.files.map(({ file }) => file);
    return [folderParts(files, filesWithin(files, opened.partitionColumns, this.#folders))];
  }

  async schema(needs?: ValueNeeds): Promise<Schema> {
    return this.#agreed(await this.#opening.get(), needs).schema;
  }

  /** The files' own layouts; as a pass of `run` would read them, if it is given. */
  protected async layouts(run?: ReadingRun): Promise<readonly Layout[]> {
    const { files } = await (run ? this.#opening.of(run) : this.#opening.get());
    return files.map(({ layout }) => layout);
  }

  /** The files that a pass reads. */
  protected async known(columns?: readonly string[], needs?: ValueNeeds): Promise<KnownFile<Layout>[]> {
    const agreed = this.#agreed(await this.#opening.get(), needs);
    const schema = pruneSchema(agreed.schema, columns, this.paths[0]);
    return this.#filesWithin(agreed).map((one) => this.#known(one, agreed, schema, needs));
  }

  #known(
    { file, layout, stamp }: Opened<Layout>['files'][number],
    { partitionColumns, versions }: Opened<Layout>,
    schema: Schema,
    needs: ValueNeeds | undefined,
  ): KnownFile<Layout> {
    const constants = constantsOf(partitionColumns, file.partitions);
    return { file: file.file, layout, size: sizeOf(stamp), schema, needs, constants, versions };
  }

  async execute(run: ReadingRun, columns?: readonly string[], needs?: ValueNeeds): Promise<BatchStream> {
    if (this.#used)
      throw new UsageError(`${this.#name} can be read only once, and it was read already`, {
        phase: 'read',
        advice: 'Write it to a file first',
      });
    const opened = this.#agreed(await this.#opening.of(run), needs);
    report(run, opened.files);
    const schema = pruneSchema(opened.schema, columns, this.paths[0]);
    this.#used = !this.replayable;
    return batchStream(schema, this.#opening.reading(this.#run(opened, schema, needs, run)));
  }

  /**
   * The files, or parts of large ones. Input from stdin or a web server is one stream, so it has no splits.
   */
  async splits(
    run: ReadingRun,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
    targetBytes: number,
  ): Promise<SourceSplits | undefined> {
    if (!this.replayable || this.paths.some(isUrl)) return undefined;
    const agreed = this.#agreed(await this.#opening.of(run), needs);
    report(run, agreed.files);
    const schema = pruneSchema(agreed.schema, columns, this.paths[0]);
    const splits: FileSplit[] = [];
    const files = this.#filesWithin(agreed);
    const { name: format, opensAtOnce } = this.#format;
    const splitsOf = async (one: (typeof files)[number]): Promise<FileSplit[]> => {
      throwIfAborted(run.signal, 'read');
      const known = this.#known(one, agreed, schema, needs);
      const { file, constants } = known;
      const whole = { format, file, constants, ...(one.stamp && { stamp: one.stamp }) };
      return (await this.#format.cut(known, targetBytes)).map((part) => ({ ...part, ...whole }));
    };
    for await (const some of mapOrdered(files, opensAtOnce, splitsOf)) splits.push(...some);
    const layouts = agreed.files.map(({ layout }) => layout);
    return {
      schema,
      splits,
      mostValues: this.#format.mostValues?.(layouts, schema),
      whenRead: () => this.#requireUnchanged(run, files),
    };
  }

  async *#run(
    agreed: Agreed<Layout>,
    schema: Schema,
    needs: ValueNeeds | undefined,
    run: ReadingRun,
  ): AsyncGenerator<RecordBatch> {
    const options = { signal: run.signal, takesFaults: needs?.takesFaults ?? false };
    const files = this.#filesWithin(agreed);
    for (const one of files) {
      throwIfAborted(options.signal, 'read');
      requireStamp(one.file.file, one.stamp);
      await otherWork();
      const known = this.#known(one, agreed, schema, needs);
      const open = this.#standard ?? (await this.#format.reopen(known));
      this.#standard = undefined;
      yield* readOpenFile(open, known.layout, schema, known.constants, options);
    }
    this.#requireUnchanged(run, files);
  }

  #requireUnchanged(run: ReadingRun, files: Agreed<Layout>['files']): void {
    const read = files.map(({ file, stamp }) => ({ file: file.file, stamp }));
    this.#opening.check(() => requireUnchanged(run, read, this.#format.endsWhole));
  }

  #filesWithin({ files, partitionColumns }: Agreed<Layout>): Agreed<Layout>['files'] {
    if (this.#folders === undefined) return files;
    const all = files.map(({ file }) => file);
    const kept = new Set(filesWithin(all, partitionColumns, this.#folders));
    return files.filter(({ file }) => kept.has(file));
  }

  /** The stream in messages. */
  get #name(): string {
    return this.#stream === STANDARD_STREAM ? 'stdin' : `the pipe ${this.#stream}`;
  }

  async #openStandard(stream: string): Promise<Opened<Layout>> {
    const versions = new UrlVersions();
    this.#standard = await this.#format.open(stream, versions);
    const { layout } = this.#standard;
    return {
      files: [{ file: { file: stream, partitions: {} }, layout, stamp: undefined }],
      partitionColumns: [],
      versions,
    };
  }

  async #openFiles(): Promise<Opened<Layout>> {
    const { files, partitionColumns } = await resolveDataset(this.paths, {
      extensions: this.#format.extensions,
      partitions: this.#partitions,
    });
    const versions = new UrlVersions();
    const { opensAtOnce, endsWhole } = this.#format;
    const opened: Opened<Layout>['files'][number][] = Array(files.length);
    const left = files.entries();
    const openSome = async () => {
      for (const [index, file] of left) {
        await otherWork();
        const stamp = fileStamp(file.file, endsWhole !== undefined);
        const open = await this.#format.open(file.file, versions);
        opened[index] = { file, layout: open.layout, stamp };
        await open.close();
      }
    };
    await Promise.all(Array.from({ length: Math.min(opensAtOnce, files.length) }, openSome));
    return { files: opened, partitionColumns, versions };
  }

  #agreed(opened: Opened<Layout>, needs: ValueNeeds | undefined): Agreed<Layout> {
    const { files, partitionColumns } = opened;
    const found = files.map(({ layout }) => layout);
    const layouts = this.#format.reconcile?.(found, needs) ?? found;
    const stored = commonSchema(
      files.map(({ file }, index) => ({ file: file.file, schema: layouts[index].schema })),
    );
    return {
      ...opened,
      files: files.map(({ file, stamp }, index) => ({ file, layout: layouts[index], stamp })),
      schema: withPartitions(stored, partitionColumns, inputName(files[0].file.file)),
    };
  }
}

function report(run: ReadingRun, files: readonly { readonly layout: FileLayout }[]): void {
  for (const { layout } of files) for (const note of layout.notes ?? []) reportOnce(run, note);
}

/** Bytes to read of a file: its size when it was opened. */
function sizeOf(stamp: FileStamp | undefined): number {
  // The kernel's virtual files (/proc) have size 0.
  return stamp?.size || Number.POSITIVE_INFINITY;
}

/** Reads an open file, and closes it: its own columns of `schema`, and constants for the others. */
export async function* readOpenFile<Layout extends FileLayout>(
  open: OpenFile<Layout>,
  layout: Layout,
  schema: Schema,
  constants: readonly ConstantColumn[],
  options: ReadSplitOptions,
): AsyncGenerator<RecordBatch, SplitEnd | undefined> {
  try {
    const wanted = new Set(schema.fields.map(({ name }) => name));
    const stored = layout.schema.fields.filter(({ name }) => wanted.has(name));
    // If no column of the file itself is wanted, the first one is read to count the rows.
    const first = stored.length === 0 && !open.countsRows ? layout.schema.fields.slice(0, 1) : [];
    const batches = open.read(layout, new Schema([...stored, ...first]), options);
    try {
      for (;;) {
        const next = await batches.next();
        throwIfAborted(options.signal, 'read');
        if (next.done) return next.value;
        const origin = originOf(next.value);
        const conformed = conformBatch(next.value, schema, constants);
        yield origin ? setOrigin(conformed, origin) : conformed;
      }
    } finally {
      await batches.return(undefined);
    }
  } finally {
    await open.close();
  }
}

/** A part of a file in a file set. */
export type FileSplit = SourceSplit & { readonly constants: readonly ConstantColumn[] };

/** Makes the function that reads a format's splits; `open` opens the part. */
export function fileSplitReader<Layout extends FileLayout>(
  open: (split: FileSplit, options: ReadSplitOptions) => Promise<OpenFile<Layout>>,
): ReadSplit {
  return async function* (split, schema, options) {
    throwIfAborted(options.signal, 'read');
    const opened = await open(split as FileSplit, options);
    return yield* readOpenFile(opened, opened.layout, schema, (split as FileSplit).constants, options);
  };
}

/** A file of a data set, and its version when it was opened. */
interface OpenedFile {
  readonly file: DatasetFile;
  readonly stamp: FileStamp | undefined;
}

/** Opens the files of a source once for the source and its copies, and again when they have changed. */
class Opening<Opened extends { readonly files: readonly OpenedFile[] }> {
  readonly #open: () => Promise<Opened>;
  #opened: Promise<Opened> | undefined;
  #latest: Opened | undefined;

  constructor(open: () => Promise<Opened>) {
    this.#open = open;
  }

  /** The files as they were opened last; undefined before that. */
  get latest(): Opened | undefined {
    return this.#latest;
  }

  /** Opens the files at the first call. A failure is not kept: the next call opens them again. */
  get(): Promise<Opened> {
    if (this.#opened === undefined) {
      const opened = this.#open();
      this.#opened = opened;
      opened.then(
        (files) => (this.#latest = files),
        () => this.forget(),
      );
    }
    return this.#opened;
  }

  /**
   * The files, as one pass of a run reads them. If other files have replaced them (see isFresh), they are
   * opened again. Throws DataError if their bytes have changed; the next call then opens them again.
   */
  async of(run: ReadingRun): Promise<Opened> {
    try {
      let opened = await this.get();
      const fresh = opened.files.map(({ file, stamp }) => isFresh(run, { file: file.file, stamp }));
      if (fresh.includes(false)) {
        this.forget();
        opened = await this.get();
      }
      return {
        ...opened,
        files: opened.files.map((one) => ({ ...one, stamp: stampOfRun(run, one.file.file, one.stamp) })),
      };
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Passes on the rows of one pass. After an error, the next pass opens the files again. */
  async *reading(rows: AsyncGenerator<RecordBatch>): AsyncGenerator<RecordBatch> {
    try {
      yield* rows;
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Runs a check of the files that were read. If it throws, the next pass opens the files again. */
  check(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** The next call opens the files again. */
  forget(): void {
    this.#opened = undefined;
  }
}
