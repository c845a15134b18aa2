import type { RecordBatch, Schema } from 'apache-arrow';
import { publicPath, throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { ReadSplitOptions, SourceSplits } from '../../engine/stream/split.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { commonSchema, pruneSchema, withPartitions } from './common-schema.ts';
import { resolveDataset } from './dataset-path.ts';
import type { DatasetFiles } from './dataset-path.ts';
import { fileStamp, requireStamp } from './file-stamp.ts';
import { readOpenFile } from './file-format.ts';
import type { FileFormat, FileSplit, OpenFile } from './file-format.ts';
import { constantsOf } from '../folders/folder-columns.ts';
import { inputName, isUrl, STANDARD_STREAM } from './path-kinds.ts';
import { otherWork } from './small-file.ts';
import { isPipe } from './stored-bytes.ts';

/** The files with their own layouts. */
interface Opened<Layout> {
  readonly files: readonly {
    readonly file: DatasetFiles['files'][number];
    readonly layout: Layout;
    readonly stamp: string;
  }[];
  readonly partitionColumns: DatasetFiles['partitionColumns'];
}

/** The files with layouts that agree. */
interface Agreed<Layout> extends Opened<Layout> {
  readonly schema: Schema;
}

/**
 * Files of one format as rows: a file, a folder, a glob, several of these (see resolveDataset), or "-" for
 * stdin, which can be read only once, as other pipes can. Files are read one after the other in the order of
 * their paths.
 *
 */
export abstract class FileSetSource<Layout extends { readonly schema: Schema }> implements Source {
  abstract readonly name: string;
  readonly replayable: boolean;
  protected readonly paths: readonly string[];
  readonly #format: FileFormat<Layout>;
  /** Stdin or another pipe. */
  readonly #stream: string | undefined;
  #opened: Promise<Opened<Layout>> | undefined;
  /** The stream, open from the first look at its columns until its rows are read. */
  #standard: OpenFile<Layout> | undefined;
  #used = false;

  constructor(paths: string | readonly string[], format: FileFormat<Layout>) {
    this.paths = typeof paths === 'string' ? [paths] : paths;
    this.#stream = this.paths.find((path) => path === STANDARD_STREAM || isPipe(path));
    this.replayable = this.#stream === undefined;
    if (this.#stream !== undefined && this.paths.length > 1)
      throw new UsageError(`${this.#name} cannot be read together with files`, { phase: 'read' });
    this.#format = format;
  }

  describe(): JsonObject {
    return { paths: this.paths.map(publicPath) };
  }

  async schema(needs?: ValueNeeds): Promise<Schema> {
    return this.#agreed(await this.#open(), needs).schema;
  }

  /** The files' own layouts. */
  protected async layouts(): Promise<readonly Layout[]> {
    return (await this.#open()).files.map(({ layout }) => layout);
  }

  async execute(
    { signal }: Pick<ExecutionContext, 'signal'>,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    if (this.#used)
      throw new UsageError(`${this.#name} can be read only once, and it was read already`, {
        phase: 'read',
        advice: 'Write it to a file first',
      });
    const opened = this.#agreed(await this.#fresh(), needs);
    const schema = pruneSchema(opened.schema, columns);
    this.#used = !this.replayable;
    return batchStream(
      schema,
      this.#run(opened, schema, { signal, takesFaults: needs?.takesFaults ?? false }),
    );
  }

  /** The files, or parts of large ones. What comes from stdin or a web server has one stream only. */
  async splits(
    { signal }: Pick<ExecutionContext, 'signal'>,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
    targetBytes: number,
  ): Promise<SourceSplits | undefined> {
    if (!this.replayable || this.paths.some(isUrl)) return undefined;
    const { files, partitionColumns, schema } = this.#agreed(await this.#fresh(), needs);
    const splits: FileSplit[] = [];
    for (const { file, layout, stamp } of files) {
      throwIfAborted(signal, 'read');
      const constants = constantsOf(partitionColumns, file.partitions);
      for (const part of await this.#format.cut(file.file, layout, targetBytes))
        splits.push({ ...part, format: this.#format.name, file: file.file, stamp, constants });
    }
    return { schema: pruneSchema(schema, columns), splits };
  }

  async *#run(
    { files, partitionColumns }: Agreed<Layout>,
    schema: Schema,
    options: ReadSplitOptions,
  ): AsyncGenerator<RecordBatch> {
    for (const { file, layout, stamp } of files) {
      throwIfAborted(options.signal, 'read');
      requireStamp(file.file, stamp);
      await otherWork();
      const open = this.#standard ?? (await this.#format.reopen(file.file, layout));
      this.#standard = undefined;
      yield* readOpenFile(open, layout, schema, constantsOf(partitionColumns, file.partitions), options);
    }
  }

  /** The files, opened again where others have taken their places since then. */
  async #fresh(): Promise<Opened<Layout>> {
    const opened = await this.#open();
    for (const { file, stamp } of opened.files) {
      if (stamp === '' || fileStamp(file.file, false) === stamp) continue;
      this.#opened = undefined;
      return this.#open();
    }
    return opened;
  }

  #open(): Promise<Opened<Layout>> {
    if (this.#opened === undefined) {
      this.#opened = this.#stream === undefined ? this.#openFiles() : this.#openStandard(this.#stream);
      // A failure is not kept: the next attempt opens the files again.
      this.#opened.catch(() => (this.#opened = undefined));
    }
    return this.#opened;
  }

  /** The stream in messages. */
  get #name(): string {
    return this.#stream === STANDARD_STREAM ? 'stdin' : `the pipe ${this.#stream}`;
  }

  async #openStandard(stream: string): Promise<Opened<Layout>> {
    this.#standard = await this.#format.open(stream);
    const { layout } = this.#standard;
    return { files: [{ file: { file: stream, partitions: {} }, layout, stamp: '' }], partitionColumns: [] };
  }

  async #openFiles(): Promise<Opened<Layout>> {
    const { files, partitionColumns } = await resolveDataset(this.paths, {
      extensions: this.#format.extensions,
    });
    const found: Layout[] = [];
    const stamps: string[] = [];
    for (const { file } of files) {
      await otherWork();
      stamps.push(fileStamp(file, false));
      const open = await this.#format.open(file);
      found.push(open.layout);
      await open.close();
    }
    return {
      files: files.map((file, index) => ({ file, layout: found[index], stamp: stamps[index] })),
      partitionColumns,
    };
  }

  #agreed({ files, partitionColumns }: Opened<Layout>, needs: ValueNeeds | undefined): Agreed<Layout> {
    const found = files.map(({ layout }) => layout);
    const layouts = this.#format.reconcile?.(found, needs) ?? found;
    const stored = commonSchema(
      files.map(({ file }, index) => ({ file: file.file, schema: layouts[index].schema })),
    );
    return {
      files: files.map(({ file, stamp }, index) => ({ file, layout: layouts[index], stamp })),
      ...withPartitions(stored, partitionColumns, inputName(files[0].file.file)),
    };
  }
}
