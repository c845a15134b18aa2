import type { RecordBatch, Schema } from 'apache-arrow';
import { totalmem } from 'node:os';
import { iterableSource } from '../connectors/iterable-source.ts';
import { type RowInput, RowSource } from '../connectors/rows/row-source.ts';
import { type EventSink, noEvents } from '../engine/events.ts';
import { formatBytes } from '../engine/format.ts';
import type { IdForm } from '../engine/keys/find-id.ts';
import { RunMetrics } from '../engine/metrics.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { hostDevice } from '../engine/run/devices.ts';
import type { Source } from '../engine/stream/operator.ts';
import type { ColumnNames } from '../operators/ratings/rows/column-names.ts';
import type { ItemNames } from '../operators/serving/item-names.ts';
import { requireSource } from './check-objects.ts';
import { checkColumnNames, checkOptions, requireOptions } from './check-options.ts';
import { type Dataset, datasetOf } from './dataset.ts';
import type { SessionDevice } from './devices/open-devices.ts';
import { SessionDevices } from './devices/session-devices.ts';
import { usableMemory } from './devices/system-limits.ts';
import { factLines } from './inspect/fact-lines.ts';
import type { Model } from './model.ts';
import { Readers, checkBatches, checkRows, type FromOptions, type FromRowsOptions } from './readers.ts';
import type { AnyRow } from './row-types.ts';
import type { RunOptions, RunSession } from './run-session.ts';
import type { ItemNamesOptions } from './serving/read-item-names.ts';
import { checkSessionOptions, type SessionOptions } from './session-options.ts';
import { SessionWork } from './session-work.ts';
import { parseSize } from './sizes.ts';

type OwnOptions = Pick<
  SessionOptions,
  'parquetBackend' | 'profile' | 'splitBytes' | 'ids' | 'once' | 'oneVersion'
>;

/**
 * Holds the devices and their threads. Everything that reads, trains or predicts starts here; close it to end
 * the threads, or declare it with `await using` (Node 24, or TypeScript with a target below `esnext`).
 */
export class Session implements RunSession, AsyncDisposable {
  /** Limit of the resident memory of the whole process, in bytes. */
  readonly memoryBudget: number;
  /** The requested form of ids; undefined: numbers if all ids of a side are safe integers, else bigints. */
  readonly ids: IdForm | undefined;
  readonly #devices: SessionDevices;
  /** @internal */
  readonly splitBytes: number | undefined;
  readonly #options: OwnOptions;
  readonly #work = new SessionWork();

  private constructor(devices: SessionDevices, memoryBudget: number, options: OwnOptions) {
    this.#devices = devices;
    this.memoryBudget = memoryBudget;
    this.splitBytes = options.splitBytes;
    this.ids = options.ids;
    this.#options = options;
  }

  /**
   * Throws UsageError for an option that is unknown or out of range, for a `spillDir` that is not writable,
   * and for device `gpu` without a GPU, naming the packages to install; CancelledError.
   */
  static async create(options: SessionOptions = {}): Promise<Session> {
    requireOptions('Session.create', options, "{ device: 'gpu' }");
    const {
      device = 'auto',
      workers,
      memoryBudget = usableMemory(),
      deviceMemory,
      spillDir,
      parquetBackend,
      ids,
      profile,
      splitBytes,
      fakeDevices,
      once,
      oneVersion,
      opening,
      signal,
      ...unknown
    } = options;
    checkSessionOptions({ device, deviceMemory, fakeDevices, profile, ids, spillDir, signal }, unknown);
    const budget = parseSize(memoryBudget, 'memoryBudget');
    const gpuBytes = deviceMemory === undefined ? undefined : parseSize(deviceMemory, 'deviceMemory');
    using _ = profile?.begin('open devices');
    const devices = await SessionDevices.open({
      device,
      workers,
      memoryBudget: budget,
      deviceMemory: gpuBytes,
      fakeDevices,
      spillDir,
      begun: opening,
      signal,
    });
    return new Session(devices, budget, { parquetBackend, profile, splitBytes, ids, once, oneVersion });
  }

  /**
   * A session without devices and threads: it reads, converts and writes rows. Work that needs a device
   * throws UsageError.
   */
  static withoutDevices(
    options: Pick<SessionOptions, 'parquetBackend' | 'profile'> = {},
    { oneVersion }: { readonly oneVersion?: boolean | undefined } = {},
  ): Session {
    checkOptions('Session.withoutDevices', options, ['parquetBackend', 'profile']);
    const { parquetBackend, profile } = options;
    return new Session(SessionDevices.none(), usableMemory(), { parquetBackend, profile, oneVersion });
  }

  /** Readers of files. Nothing is opened until the rows or their schema are requested. */
  get read(): Readers {
    return new Readers(this, this.#options.parquetBackend);
  }

  /**
   * Record batches as a data set: an array, a generator, the stream of another library. A data set from a
   * one-time iterator can be used only once. `schema` is only needed if there may be no batch.
   */
  from<Row extends object = AnyRow>(
    batches: AsyncIterable<RecordBatch> | Iterable<RecordBatch>,
    schema?: Schema,
    options: FromOptions = {},
  ): Dataset<Row> {
    const { columns, ...pulls } = checkBatches(batches, schema, options);
    return this.source(iterableSource(batches, schema, pulls), columns);
  }

  /**
   * Plain objects as a data set, such as the rows of a database: an array, any iterable or async iterable, of
   * rows or of pages (arrays of rows). Columns and types are detected from the values: number (int32, int64
   * or float64), bigint, string, boolean, Date, arrays of such as lists. A column may be null or missing in a
   * row; columns of objects are left out, with a warning where all columns are read. Batches have at most 65,536 rows. An array, or a function that returns a
   * new iterable for each pass, can be read repeatedly; an iterator once. Reading throws DataError that names
   * row, column and value if a column has values of different types.
   */
  fromRows<Row extends object = AnyRow>(rows: RowInput, options: FromRowsOptions = {}): Dataset<Row> {
    const { columns, ...types } = checkRows(options);
    return this.source(new RowSource(rows, types), columns);
  }

  /** A data set over a source, of the library or your own, with column names by role. */
  source<Row extends object = AnyRow>(source: Source, columns: ColumnNames = {}): Dataset<Row> {
    requireSource(source);
    checkColumnNames('session.source', columns);
    return datasetOf(this, source, columns);
  }

  /**
   * The model in a folder written by `save` or Spark ML. Throws DataError naming a missing or wrong file, and a
   * file that belongs to another model.
   */
  async loadModel(directory: string, options: RunOptions = {}): Promise<Model> {
    this.#work.requireOpen();
    using _ = this.beginPhase('load model');
    const { Model } = await import('./model.ts');
    return Model.load(this, directory, options);
  }

  /**
   * Names of items for people to read, such as the titles of films, from a file of any supported format: CSV,
   * TSV, other text, NDJSON, Parquet or Arrow. Columns are found by their names unless `idCol`, `nameCol` and
   * `genreCol` are given. With `model`, the file's ids are compared with its items. A note counts repeated,
   * missing and unknown ids. Throws DataError that lists the columns if one is missing, and for a file
   * without an id of the model.
   */
  async readItemNames(path: string, options: ItemNamesOptions = {}): Promise<ItemNames> {
    this.#work.requireOpen();
    const { readItemNames } = await import('./serving/read-item-names.ts');
    return readItemNames(this, path, options);
  }

  /** The devices, and the reason for the choice. */
  get device(): SessionDevice {
    return this.#devices.device;
  }

  /** @internal True while a GPU is still being opened. */
  get opening(): boolean {
    return this.#devices.opening;
  }

  /**
   * Waits for a GPU that was still opening when the session received it, and passes its warning to `onEvent`.
   * Throws the errors of `create`.
   * @internal
   */
  async opened(onEvent?: EventSink): Promise<void> {
    await this.#devices.opened(onEvent);
  }

  /**
   * The context of operators: this session's devices, new metrics, the caller's listener, and a signal that
   * fires with the caller's signal and when the session closes. Throws UsageError once it is closed.
   */
  context({ signal, onEvent }: RunOptions = {}): ExecutionContext {
    this.#work.requireOpen();
    this.#devices.passWarning(onEvent);
    return {
      signal: this.#work.signalOf(signal),
      follow: this.#work.follow,
      executor: this.#devices.executor,
      events: onEvent ?? noEvents,
      metrics: new RunMetrics(this.#options.profile?.spans),
      ...(this.#options.oneVersion && { command: this }),
    };
  }

  /**
   * The context for requests for single rows. Its threads do nothing else, so requests do not wait for long
   * work of the session.
   * @internal
   */
  requestContext({ signal, onEvent }: RunOptions = {}): ExecutionContext {
    return { ...this.context({ signal, onEvent }), executor: this.#devices.requests };
  }

  /**
   * Starts a phase of this session's profile that belongs to no run.
   * @internal
   */
  beginPhase(phase: string): Disposable {
    return new RunMetrics(this.#options.profile?.spans).begin(phase);
  }

  /**
   * @internal Called when the factors of a training are in host memory. Starts closing GPUs that are no
   * longer used (`close` waits for that); memory that the run released is collected while its model is
   * written.
   */
  trained(): void {
    if (!this.#options.once) return;
    for (const device of this.#devices.executor.devices) {
      if (device.info.kind === 'gpu') device.close().catch(() => undefined);
      else if (!this.bounded) device.leaveGarbage?.();
    }
  }

  /**
   * @internal Called when threads write the files of a model: memory left by `trained` is collected
   * meanwhile, which saves time at the end of the process.
   */
  saving(): void {
    if (this.#options.once && !this.bounded)
      hostDevice(this.#devices.executor)
        .trim()
        .catch(() => undefined);
  }

  /** @internal True if memory that a run leaves is collected. */
  get tidies(): boolean {
    return !this.#options.once || this.bounded;
  }

  /** @internal True if memory is limited. */
  get bounded(): boolean {
    return this.memoryBudget < totalmem();
  }

  /** @internal Number of threads that load and compute on the CPU. */
  get workers(): number {
    return hostDevice(this.#devices.executor).info.parallelism;
  }

  /** True after `close`. */
  get closed(): boolean {
    return this.#work.closed;
  }

  /**
   * Cancels running work of this session, waits until it has ended, and ends the threads. Running and later
   * work throws UsageError "the session is closed": fits, requests, reading and writing rows. Incomplete
   * output is removed. Work that does not end within ten seconds, such as a function of `mapBatches` that
   * never returns, is abandoned. To let work finish, await it first.
   */
  async close(): Promise<void> {
    using _ = this.#options.profile?.begin('end');
    await this.#work.close();
    await this.#devices.close();
  }

  /** State, devices, workers, memory budget and form of ids. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const workers = this.#devices.executor.devices.length === 0 ? undefined : this.workers;
    return sessionText({
      closed: this.closed,
      device: this.opening ? undefined : this.device,
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

/** A session for console.log. */
interface SessionFacts {
  readonly closed: boolean;
  /** undefined while a GPU is being opened. */
  readonly device: { readonly description: string; readonly reason?: string | undefined } | undefined;
  /** Threads of the CPU; undefined for a session without devices. */
  readonly workers: number | undefined;
  readonly memoryBudget: number;
  readonly bounded: boolean;
  readonly ids: string | undefined;
}

function sessionText({ closed, device, workers, memoryBudget, bounded, ids }: SessionFacts): string {
  const reason = device?.reason === undefined ? '' : ` (${device.reason})`;
  return factLines('Session', {
    state: closed ? 'closed' : 'open',
    devices: device === undefined ? 'still being opened' : device.description + reason,
    workers: workers === undefined ? 'none' : String(workers),
    memory: `${formatBytes(memoryBudget)}${bounded ? '' : ', the memory of the machine'}`,
    ids: ids ?? 'numbers where all ids of a side are safe integers, else bigints',
  });
}
