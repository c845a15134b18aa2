import type { RecordBatch, Schema } from 'apache-arrow';
import { publicPath, throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { Message } from '../../engine/events.ts';
import type { Bound, Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Source, SourceParts, ValueNeeds } from '../../engine/stream/operator.ts';
import type { FileStamp, ReadSplitOptions, SourceSplits } from '../../engine/stream/split.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import {
  checkFolderColumns,
  constantsOf,
  type FolderColumns,
  filesWithin,
  folderCondition,
  folderParts,
} from '../folders/folder-columns.ts';
import { UrlVersions } from '../http/url-versions.ts';
import { commonSchema, pruneSchema, withPartitions } from './common-schema.ts';
import { type DatasetFiles, resolveDataset } from './dataset-path.ts';
import { type FileFormat, type FileSplit, type OpenFile, readOpenFile } from './file-format.ts';
import { fileStamp, type ReadingRun, reportOnce, requireStamp, requireUnchanged } from './file-stamp.ts';
import { type OpenedFile, Opening } from './opening.ts';
import { inputName, isUrl, pathList, STANDARD_STREAM } from './path-kinds.ts';
import { otherWork, isPipe } from './stored-bytes.ts';

/** The columns of a file, and what was inferred about it and may be wrong. */
interface FileLayout {
  readonly schema: Schema;
  readonly notes?: readonly Message[];
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

  /** A copy of this source with nothing opened. */
  protected abstract again(): FileSetSource<Layout>;

  /**
   * The same files without folders that the predicate excludes by name. Takes effect when the files are
   * opened.
   */
  within(_bounds: readonly Bound[], predicate?: Expression): FileSetSource<Layout> {
    const condition = folderCondition(predicate, this.#opening.latest?.partitionColumns ?? []);
    if (condition === undefined) return this;
    const source = this.again();
    source.#folders = condition;
    source.#opening = this.#opening;
    return source;
  }

  /** Numbers of all folders and of those read, if a condition on their names was given. */
  async parts(): Promise<readonly SourceParts[]> {
    if (this.#folders === undefined) return [];
    const opened = await this.#opening.get();
    const files = opened.files.map(({ file }) => file);
    return [folderParts(files, filesWithin(files, opened.partitionColumns, this.#folders))];
  }

  async schema(needs?: ValueNeeds): Promise<Schema> {
    return this.#agreed(await this.#opening.get(), needs).schema;
  }

  /** The files' own layouts. */
  protected async layouts(): Promise<readonly Layout[]> {
    return (await this.#opening.get()).files.map(({ layout }) => layout);
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
    const options = { signal: run.signal, takesFaults: needs?.takesFaults ?? false };
    return batchStream(schema, this.#opening.reading(this.#run(opened, schema, options, run)));
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
    const { partitionColumns, schema } = agreed;
    const splits: FileSplit[] = [];
    const files = this.#filesWithin(agreed);
    for (const { file, layout, stamp } of files) {
      throwIfAborted(run.signal, 'read');
      const whole = {
        format: this.#format.name,
        file: file.file,
        constants: constantsOf(partitionColumns, file.partitions),
        ...(stamp && { stamp }),
      };
      for (const part of await this.#format.cut(file.file, layout, targetBytes, sizeOf(stamp)))
        splits.push({ ...part, ...whole });
    }
    return {
      schema: pruneSchema(schema, columns, this.paths[0]),
      splits,
      whenRead: () => this.#requireUnchanged(run, files),
    };
  }

  async *#run(
    agreed: Agreed<Layout>,
    schema: Schema,
    options: ReadSplitOptions,
    run: ReadingRun,
  ): AsyncGenerator<RecordBatch> {
    const { partitionColumns, versions } = agreed;
    const files = this.#filesWithin(agreed);
    for (const { file, layout, stamp } of files) {
      throwIfAborted(options.signal, 'read');
      requireStamp(file.file, stamp);
      await otherWork();
      const open = this.#standard ?? (await this.#format.reopen(file.file, layout, sizeOf(stamp), versions));
      this.#standard = undefined;
      yield* readOpenFile(open, layout, schema, constantsOf(partitionColumns, file.partitions), options);
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
    const found: Layout[] = [];
    const stamps: (FileStamp | undefined)[] = [];
    for (const { file } of files) {
      await otherWork();
      stamps.push(fileStamp(file, this.#format.endsWhole !== undefined));
      const open = await this.#format.open(file, versions);
      found.push(open.layout);
      await open.close();
    }
    return {
      files: files.map((file, index) => ({ file, layout: found[index], stamp: stamps[index] })),
      partitionColumns,
      versions,
    };
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
