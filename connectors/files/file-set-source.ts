import { Schema } from 'apache-arrow';
import type { RecordBatch } from 'apache-arrow';
import { throwIfAborted, UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { batchStream, originOf, setOrigin } from '../../engine/stream/stream.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { commonSchema, conformBatch, pruneSchema, withPartitions } from './common-schema.ts';
import { resolveDataset } from './dataset-path.ts';
import type { DatasetFiles } from './dataset-path.ts';
import { constantsOf } from './hive-partitions.ts';
import { inputName, STANDARD_STREAM } from './path-kinds.ts';

/** One open file with known columns. It can be read once. */
export interface OpenFile<Layout> {
  readonly layout: Layout;
  /** The rows under `schema`, which has some of the file's columns in their order; every batch has its origin. `takesFaults` is of ValueNeeds. */
  read(layout: Layout, schema: Schema, signal: AbortSignal, takesFaults: boolean): AsyncGenerator<RecordBatch>;
  close(): Promise<void>;
}

/** A kind of file that is read from its beginning to its end. */
export interface FileFormat<Layout extends { readonly schema: Schema }> {
  /** Endings of such files inside folders. */
  readonly extensions: readonly string[];
  /** `known`: the layout from an earlier opening. */
  open(file: string, known?: Layout): Promise<OpenFile<Layout>>;
  /** Makes the layouts of several files agree where that is possible. */
  reconcile?(layouts: readonly Layout[], needs?: ValueNeeds): readonly Layout[];
}

/** The files with their own layouts. */
interface Opened<Layout> {
  readonly files: readonly { readonly file: DatasetFiles['files'][number]; readonly layout: Layout }[];
  readonly partitionColumns: DatasetFiles['partitionColumns'];
}

/** The files with layouts that agree. */
interface Agreed<Layout> extends Opened<Layout> {
  readonly schema: Schema;
}

/**
 * Files of one format as rows: a file, a folder, a glob, several of these (see resolveDataset), or "-" for stdin, which can be read
 * only once. Files are read one after the other in the order of their paths.
 */
export abstract class FileSetSource<Layout extends { readonly schema: Schema }> implements Source {
  abstract readonly name: string;
  readonly replayable: boolean;
  protected readonly paths: readonly string[];
  readonly #format: FileFormat<Layout>;
  #opened: Promise<Opened<Layout>> | undefined;
  /** Stdin, open from the first look at its columns until its rows are read. */
  #standard: OpenFile<Layout> | undefined;
  #used = false;

  constructor(paths: string | readonly string[], format: FileFormat<Layout>) {
    this.paths = typeof paths === 'string' ? [paths] : paths;
    this.replayable = !this.paths.includes(STANDARD_STREAM);
    if (!this.replayable && this.paths.length > 1) throw new UsageError('"-" (stdin) cannot be read together with files', { phase: 'read' });
    this.#format = format;
  }

  describe(): JsonObject {
    return { paths: this.paths };
  }

  async schema(needs?: ValueNeeds): Promise<Schema> {
    return this.#agreed(await this.#open(), needs).schema;
  }

  async execute({ signal }: Pick<ExecutionContext, 'signal'>, columns?: readonly string[], needs?: ValueNeeds): Promise<BatchStream> {
    if (this.#used) throw new UsageError('stdin can be read only once, and it was read already', { phase: 'read', advice: 'Write it to a file first' });
    const opened = this.#agreed(await this.#open(), needs);
    const schema = pruneSchema(opened.schema, columns);
    this.#used = !this.replayable;
    return batchStream(schema, this.#run(opened, schema, signal, needs?.takesFaults ?? false));
  }

  async *#run({ files, partitionColumns }: Agreed<Layout>, schema: Schema, signal: AbortSignal, takesFaults: boolean): AsyncGenerator<RecordBatch> {
    for (const { file, layout } of files) {
      throwIfAborted(signal, 'read');
      const open = this.#standard ?? (await this.#format.open(file.file, layout));
      this.#standard = undefined;
      const wanted = schema.fields.map(({ name }) => name);
      const stored = layout.schema.fields.filter(({ name }) => wanted.includes(name));
      const constants = constantsOf(partitionColumns, file.partitions);
      try {
        // Reads the file's first column to count the rows, where none of its own columns is wanted.
        for await (const batch of open.read(layout, new Schema(stored.length > 0 ? stored : layout.schema.fields.slice(0, 1)), signal, takesFaults)) {
          throwIfAborted(signal, 'read');
          const origin = originOf(batch);
          const conformed = conformBatch(batch, schema, constants);
          yield origin ? setOrigin(conformed, origin) : conformed;
        }
      } finally {
        await open.close();
      }
    }
  }

  #open(): Promise<Opened<Layout>> {
    if (this.#opened === undefined) {
      this.#opened = this.replayable ? this.#openFiles() : this.#openStandard();
      // A failure is not kept: the next attempt opens the files again.
      this.#opened.catch(() => (this.#opened = undefined));
    }
    return this.#opened;
  }

  async #openStandard(): Promise<Opened<Layout>> {
    this.#standard = await this.#format.open(STANDARD_STREAM);
    const { layout } = this.#standard;
    return { files: [{ file: { file: STANDARD_STREAM, partitions: {} }, layout }], partitionColumns: [] };
  }

  async #openFiles(): Promise<Opened<Layout>> {
    const { files, partitionColumns } = await resolveDataset(this.paths, { extensions: this.#format.extensions });
    const found: Layout[] = [];
    for (const { file } of files) {
      const open = await this.#format.open(file);
      found.push(open.layout);
      await open.close();
    }
    return { files: files.map((file, index) => ({ file, layout: found[index] })), partitionColumns };
  }

  #agreed({ files, partitionColumns }: Opened<Layout>, needs: ValueNeeds | undefined): Agreed<Layout> {
    const found = files.map(({ layout }) => layout);
    const layouts = this.#format.reconcile?.(found, needs) ?? found;
    const stored = commonSchema(files.map(({ file }, index) => ({ file: file.file, schema: layouts[index].schema })));
    return { files: files.map(({ file }, index) => ({ file, layout: layouts[index] })), ...withPartitions(stored, partitionColumns, inputName(files[0].file.file)) };
  }
}
