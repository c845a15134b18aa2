import { totalmem } from 'node:os';
import type { RecordBatch, Schema } from 'apache-arrow';
import { iterableSource } from '../connectors/iterable-source.ts';
import type { ParquetBackendName } from '../connectors/parquet/backend.ts';
import { SpillFolder } from '../connectors/spill/spill-folder.ts';
import { ArrowSource } from '../connectors/arrow/arrow-source.ts';
import { openSource } from '../connectors/open-source.ts';
import { NdjsonSource } from '../connectors/ndjson/ndjson-source.ts';
import { ParquetSource } from '../connectors/parquet/parquet-source.ts';
import type { RowInput } from '../connectors/rows/row-pages.ts';
import { RowSource } from '../connectors/rows/row-source.ts';
import { TextSource } from '../connectors/text/text-source.ts';
import { sessionClosed, UsageError } from '../engine/errors.ts';
import { type EventSink, noEvents } from '../engine/events.ts';
import type { Executor } from '../engine/run/device.ts';
import { hostDevice } from '../engine/run/devices.ts';
import type { IdForm } from '../engine/keys/id-form.ts';
import { LocalExecutor } from '../engine/run/local-executor.ts';
import { SpillMemory } from '../connectors/spill/spill-memory.ts';
import { RunMetrics } from '../engine/metrics.ts';
import type { Source } from '../engine/stream/operator.ts';
import type { ColumnNames } from '../operators/ratings/rows/column-names.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { shown } from './check-options.ts';
import { type Dataset, datasetOf } from './dataset.ts';
import type { Model } from './model.ts';
import type { ItemNamesOptions } from './serving/read-item-names.ts';
import type { ItemNames } from '../operators/serving/item-names.ts';
import { MemoryFiles } from '../gpu/exchange/memory-files.ts';
import { openRequests } from './devices/open-requests.ts';
import { OpeningDevices, type SessionDevice } from './devices/open-devices.ts';
import type { Profile } from './reports/profile.ts';
import {
  checkBatches,
  checkRows,
  type FromOptions,
  type FromRowsOptions,
  type ReadAnyOptions,
  type ReadArrowOptions,
  conditionOf,
  readingOf,
  type ReadNdjsonOptions,
  type ReadParquetOptions,
  type ReadTextOptions,
} from './reading.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import { checkSessionOptions, type SessionOptions } from './session-options.ts';
import { sessionText } from './inspect/session-text.ts';
import { parseSize } from './sizes.ts';

/**
 * Holds the devices and their threads. Everything that reads, trains or predicts starts here; close it to end
 * the threads, or declare it with `await using` (Node 24, or TypeScript with a target below `esnext`).
 *
 */
export class Session implements RunSession, AsyncDisposable {
  /** Bytes that the whole process may have resident. */
  readonly memoryBudget: number;
  /**
   * The form of ids that was asked for; undefined: numbers where all ids of a side are safe integers, else
   * bigints.
   */
  readonly ids: IdForm | undefined;
  readonly #executor: LocalExecutor;
  readonly #opening: OpeningDevices | undefined;
  #device: SessionDevice | undefined;
  /** @internal */
  readonly splitBytes: number | undefined;
  readonly #parquetBackend: ParquetBackendName | undefined;
  readonly #profile: Profile | undefined;
  readonly #once: boolean;
  /** The device of requests, opened at the first one. */
  #requests: Executor | undefined;
  #closed = false;
  #warning: string | undefined;

  private constructor(
    executor: LocalExecutor,
    devices: OpeningDevices | SessionDevice,
    memoryBudget: number,
    {
      parquetBackend,
      profile,
      splitBytes,
      ids,
      once = false,
    }: Pick<SessionOptions, 'parquetBackend' | 'profile' | 'splitBytes' | 'ids' | 'once'>,
  ) {
    this.#executor = executor;
    this.memoryBudget = memoryBudget;
    this.#parquetBackend = parquetBackend;
    this.splitBytes = splitBytes;
    this.#profile = profile;
    this.ids = ids;
    this.#once = once;
    if (devices instanceof OpeningDevices) this.#opening = devices;
    else this.#device = devices;
  }

  /**
   * Throws UsageError for an option that is unknown or out of range, for a `spillDir` that cannot be written
   * to, and for device `gpu` without a GPU, naming the packages to install; CancelledError.
   */
  static async create(options: SessionOptions = {}): Promise<Session> {
    if (typeof options !== 'object' || options === null)
      throw new UsageError(`Session.create takes options, got ${shown(options)}`, {
        advice: "For example Session.create({ device: 'gpu' })",
      });
    const {
      device = 'auto',
      workers,
      memoryBudget = totalmem(),
      deviceMemory,
      spillDir,
      parquetBackend,
      ids,
      profile,
      splitBytes,
      fakeDevices,
      once = false,
      opening: begun,
      signal,
      ...unknown
    } = options;
    checkSessionOptions({ device, deviceMemory, fakeDevices, profile, ids, spillDir }, unknown);
    const budget = parseSize(memoryBudget, 'memoryBudget');
    const gpuBytes = deviceMemory === undefined ? undefined : parseSize(deviceMemory, 'deviceMemory');
    const folder = new SpillFolder(spillDir);
    // A folder that cannot be used shows before the work.
    if (spillDir !== undefined) await folder.open();
    const spilled = new SpillMemory(folder);
    using _ = profile?.begin('open devices');
    const wanted = { device, workers, memoryBudget: budget, deviceMemory: gpuBytes, fakeDevices, signal };
    const opening = begun instanceof OpeningDevices ? begun : new OpeningDevices(wanted);
    try {
      // Other CPUs replace it with `fakeDevices` where there is no GPU.
      const first = fakeDevices === undefined ? [opening.openCpu()] : [];
      const session = new Session(
        new LocalExecutor(first, spilled, () => new MemoryFiles()),
        opening,
        budget,
        { parquetBackend, profile, splitBytes, ids, once },
      );
      if (opening !== begun || fakeDevices !== undefined) await session.opened();
      return session;
    } catch (error) {
      await opening.close();
      await spilled.close();
      throw error;
    }
  }

  /**
   * A session without devices and threads: it reads, converts and writes rows. Work for a device throws
   * UsageError in it.
   */
  static withoutDevices({
    parquetBackend,
    profile,
  }: Pick<SessionOptions, 'parquetBackend' | 'profile'> = {}): Session {
    return new Session(
      new LocalExecutor([]),
      { requested: 'cpu', kind: 'cpu', adapter: null, description: 'no device' },
      totalmem(),
      { parquetBackend, profile },
    );
  }

  /** Readers of files. Nothing is opened before the rows or their schema are asked for. */
  get read() {
    return {
      /** Parquet: a file, a folder of part files, a glob, folders such as `year=1999`, or several of them. */
      parquet: (paths: string | readonly string[], options: ReadParquetOptions = {}): Dataset => {
        const { source, names } = readingOf('read.parquet', options);
        const { filter, partitions } = source;
        const parquet = new ParquetSource(paths, { backend: this.#parquetBackend, partitions });
        const rows = this.source(parquet, names);
        return filter === undefined ? rows : rows.filter(conditionOf(filter));
      },
      /** Comma-separated text, plain or packed; header and types are found out where they are not given. */
      csv: (paths: string | readonly string[], options: ReadTextOptions = {}): Dataset => {
        const { source, names } = readingOf('read.csv', options);
        return this.source(new TextSource(paths, { delimiter: ',', ...source }), names);
      },
      /** Text with any delimiter, which is found out where it is not given: CSV, TSV, "::" and others. */
      text: (paths: string | readonly string[], options: ReadTextOptions = {}): Dataset => {
        const { source, names } = readingOf('read.text', options);
        return this.source(new TextSource(paths, source), names);
      },
      /**
       * NDJSON: one JSON object on each line, plain or packed as text can be; fields and types are found out
       * where they are not given.
       */
      ndjson: (paths: string | readonly string[], options: ReadNdjsonOptions = {}): Dataset => {
        const { source, names } = readingOf('read.ndjson', options);
        return this.source(new NdjsonSource(paths, source), names);
      },
      /** Arrow IPC, file (Feather too) or stream format; "-" is stdin. */
      arrow: (paths: string | readonly string[], options: ReadArrowOptions = {}): Dataset => {
        const { source, names } = readingOf('read.arrow', options);
        return this.source(new ArrowSource(paths, source), names);
      },
      /** Files of any of these formats, told by their endings and first bytes; reads those at once. */
      any: async (paths: string | readonly string[], options: ReadAnyOptions = {}): Promise<Dataset> => {
        const { source, names } = readingOf('read.any', options);
        using _ = this.beginPhase('open files');
        return this.source(
          await openSource(paths, { parquetBackend: this.#parquetBackend, ...source }),
          names,
        );
      },
    };
  }

  /**
   * Record batches as a data set: an array, a generator, the stream of another library. An iterator that can
   * be pulled only once makes a data set that can be used only once. `schema` is needed only when there may
   * be no batch.
   *
   */
  from(
    batches: AsyncIterable<RecordBatch> | Iterable<RecordBatch>,
    schema?: Schema,
    options: FromOptions = {},
  ): Dataset {
    const { columns, ...pulls } = checkBatches(batches, schema, options);
    return this.source(iterableSource(batches, schema, pulls), columns);
  }

  /**
   * Plain objects as a data set, such as the rows of a database: an array, any iterable or async iterable, of
   * rows or of pages (arrays of rows). Columns and types are found from the values: number (int32, int64 or
   * float64), bigint, string, boolean, Date. A column may be null or missing in a row; objects and arrays as
   * values are left out. Batches have at most 65,536 rows. An array, and a function that makes the iterable
   * anew for each pass, can be read repeatedly; an iterator once. Reading throws DataError that names row,
   * column and value where a column's kinds differ.
   *
   */
  fromRows(rows: RowInput, options: FromRowsOptions = {}): Dataset {
    const { columns, ...types } = checkRows(options);
    return this.source(new RowSource(rows, types), columns);
  }

  /** A data set over a source of the caller, with the names of its columns. */
  source(source: Source, columns: ColumnNames = {}): Dataset {
    return datasetOf(this, source, columns);
  }

  /**
   * The model in a folder that `save` or Spark ML wrote. Throws DataError naming the file that is missing or
   * wrong.
   */
  async loadModel(directory: string): Promise<Model> {
    if (this.#closed) throw sessionClosed();
    using _ = this.beginPhase('load model');
    const { Model } = await import('./model.ts');
    return Model.load(this, directory);
  }

  /**
   * Names of items for people to read, such as the titles of films, from a file of any format that is read:
   * CSV, TSV, other text, NDJSON, Parquet or Arrow. Columns are found by their names unless `idCol`,
   * `nameCol` and `genreCol` are given. With `model` its items and the file's ids are compared. What is
   * repeated, missing or unknown is counted in a note. Throws DataError that lists the columns where one is
   * missing, and for a file without an id of the model.
   *
   */
  async readItemNames(path: string, options: ItemNamesOptions = {}): Promise<ItemNames> {
    if (this.#closed) throw sessionClosed();
    const { readItemNames } = await import('./serving/read-item-names.ts');
    return readItemNames(this, path, options);
  }

  /** The devices, and the reason for the choice. */
  get device(): SessionDevice {
    if (this.#device === undefined) throw new Error('the devices of this session are still being opened');
    return this.#device;
  }

  /** @internal True while a GPU is still being opened. */
  get opening(): boolean {
    return this.#device === undefined;
  }
  /**
   * Waits for the GPU of a session that was given while it was being opened, and tells `onEvent` what its
   * warning is. Throws as `create` does.
   * @internal
   *
   */
  async opened(onEvent?: EventSink): Promise<void> {
    if (this.#opening === undefined || this.#device !== undefined) return;
    const { devices, device } = await this.#opening.all();
    if (this.opening) {
      this.#executor.add(devices.slice(this.#executor.devices.length));
      this.#device = device;
      this.#warning = device.warning;
    }
    this.#tellWarning(onEvent);
  }

  #tellWarning(onEvent: EventSink | undefined): void {
    if (onEvent === undefined || this.#warning === undefined) return;
    onEvent({ type: 'warning', text: this.#warning });
    this.#warning = undefined;
  }

  /** The context of operators: this session's devices, new metrics, and the caller's signal and listener. */
  context({ signal, onEvent }: RunOptions = {}): ExecutionContext {
    if (this.#closed) throw sessionClosed();
    this.#tellWarning(onEvent);
    return {
      signal: signal ?? new AbortController().signal,
      executor: this.#executor,
      events: onEvent ?? noEvents,
      metrics: new RunMetrics(this.#profile?.spans),
    };
  }

  /**
   * The context of requests for single rows, whose threads do nothing else: long work of the session does not
   * stand before them.
   * @internal
   *
   */
  requestContext({ signal, onEvent }: RunOptions = {}): ExecutionContext {
    const ctx = this.context({ signal, onEvent });
    this.#requests ??= openRequests(ctx.executor);
    return { ...ctx, executor: this.#requests };
  }

  /**
   * Begins a phase of this session's profile that belongs to no run.
   * @internal
   */
  beginPhase(phase: string): Disposable {
    return new RunMetrics(this.#profile?.spans).begin(phase);
  }

  /**
   * @internal Told that the factors of a training are in host memory: begins to close GPUs that nothing will
   *   use any more, for whose end `close` waits; what a run releases is collected while its model is written.
   */
  trained(): void {
    if (!this.#once) return;
    for (const device of this.#executor.devices) {
      if (device.info.kind === 'gpu') device.close().catch(() => undefined);
      else if (!this.bounded) device.leaveGarbage?.();
    }
  }

  /**
   * @internal Told that threads write the files of a model: what `trained` has left is collected meanwhile,
   *   which saves time at the end of the process.
   */
  saving(): void {
    if (this.#once && !this.bounded)
      hostDevice(this.#executor)
        .trim()
        .catch(() => undefined);
  }

  /** @internal True where memory that a run leaves is collected. */
  get tidies(): boolean {
    return !this.#once || this.bounded;
  }

  /** @internal True where memory was bounded. */
  get bounded(): boolean {
    return this.memoryBudget < totalmem();
  }

  /** @internal Threads that load and compute on the CPU. */
  get workers(): number {
    return hostDevice(this.#executor).info.parallelism;
  }

  /** True after `close`. */
  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Waits for the tasks under way and ends the threads; work that still runs or begins in this session throws
   * UsageError.
   */
  async close(): Promise<void> {
    using _ = this.#profile?.begin('end');
    this.#closed = true;
    await Promise.all([this.#opening?.close(), this.#requests?.close()]);
    await this.#executor.close();
  }

  /** State, devices, workers, memory budget and form of ids. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const workers = this.#executor.devices.length === 0 ? undefined : this.workers;
    return sessionText({
      closed: this.#closed,
      device: this.#device,
      workers,
      memoryBudget: this.memoryBudget,
      bounded: this.bounded,
      ids: this.ids,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
