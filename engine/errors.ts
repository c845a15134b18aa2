/**
 * Every failure that a user can cause or must act on is one of these; any other error that is thrown is a bug
 * in FactorFlow. The error carries the exit code, so that the command line and an embedding program report
 * the same failure.
 */
export type ExitCode = 1 | 2 | 3 | 4 | 5 | 130;

/** The kind of a failure; the names stay the same between releases. */
export type ErrorCode = 'USAGE' | 'DATA' | 'CAPACITY' | 'DIVERGED' | 'DEVICE_LOST' | 'CANCELLED';

/** The place of an error and the advice for it; every field that is known is printed. */
export interface ErrorDetails {
  /** The phase of the program: "read", "index-ids", "train", "save", ... */
  readonly phase?: string;
  readonly file?: string;
  /** Row group of a Parquet file, from 0. */
  readonly rowGroup?: number;
  /** Row of the file or stream, from 0; messages count from 1. */
  readonly row?: number;
  /** Line of a text file, from 1, in place of the row. */
  readonly line?: number;
  readonly column?: string;
  /** The place of the device that failed, such as gpu:1. */
  readonly device?: string;
  /** One sentence of advice. */
  readonly advice?: string;
  readonly cause?: unknown;
}

/** The place where training diverged, as far as it is known. */
export interface DivergedDetails extends ErrorDetails {
  /** The iteration of ALS, or the epoch of SGD. */
  readonly iteration?: number;
  readonly side?: 'users' | 'items';
  /** The user or item, as text. */
  readonly id?: string;
}

export abstract class FactorFlowError extends Error {
  /** Written out in each class, since bundlers shorten the names of classes. */
  abstract override readonly name: string;
  abstract readonly code: ErrorCode;
  abstract readonly exitCode: ExitCode;
  /** The message without place and advice. */
  readonly summary: string;
  readonly details: ErrorDetails;

  constructor(summary: string, given: ErrorDetails = {}) {
    const details = given.file === undefined ? given : { ...given, file: publicPath(given.file) };
    super(compose(summary, details), details.cause === undefined ? undefined : { cause: details.cause });
    this.summary = summary;
    this.details = details;
  }
}

/** Bad usage or configuration (exit 2). */
export class UsageError extends FactorFlowError {
  override readonly name: string = 'UsageError';
  override readonly code = 'USAGE';
  override readonly exitCode = 2;
}

/** The data cannot be read or used (exit 3). */
export class DataError extends FactorFlowError {
  override readonly name: string = 'DataError';
  override readonly code = 'DATA';
  override readonly exitCode = 3;
}

/** The work does not fit: memory budget, device, disk (exit 4). */
export class CapacityError extends FactorFlowError {
  override readonly name: string = 'CapacityError';
  override readonly code = 'CAPACITY';
  override readonly exitCode = 4;
}

/** The iteration diverged, or a block is singular (exit 5). */
export class DivergedError extends FactorFlowError {
  override readonly name: string = 'DivergedError';
  override readonly code = 'DIVERGED';
  override readonly exitCode = 5;
  declare readonly details: DivergedDetails;

  constructor(summary: string, details: DivergedDetails = {}) {
    super(summary, details);
  }

  get iteration(): number | undefined {
    return this.details.iteration;
  }

  get side(): 'users' | 'items' | undefined {
    return this.details.side;
  }

  get id(): string | undefined {
    return this.details.id;
  }
}

/** A GPU went away in the middle of a run (exit 5). */
export class DeviceLostError extends FactorFlowError {
  override readonly name: string = 'DeviceLostError';
  override readonly code = 'DEVICE_LOST';
  override readonly exitCode = 5;
}

/** The caller's AbortSignal fired (exit 130); `cause` is the signal's reason. */
export class CancelledError extends FactorFlowError {
  override readonly name: string = 'CancelledError';
  override readonly code = 'CANCELLED';
  override readonly exitCode = 130;
  constructor(details: ErrorDetails = {}) {
    super('cancelled', details);
  }
}

const classes = { UsageError, DataError, CapacityError, DivergedError, DeviceLostError } as const;

/** An error as plain data, so that it can cross to another thread or process. */
export interface SerializedError {
  readonly name: string;
  readonly message: string;
  readonly summary?: string;
  readonly details?: ErrorDetails;
  readonly stack?: string;
  /** The facts of a system error: its code ("EIO"), the call and the path. */
  readonly system?: Readonly<Record<string, string>>;
}

export function serializeError(error: unknown): SerializedError {
  if (error instanceof FactorFlowError) {
    const { cause: _cause, ...details } = error.details;
    return { name: error.name, message: error.message, summary: error.summary, details };
  }
  if (error instanceof Error)
    return { name: error.name, message: error.message, stack: error.stack, system: systemFacts(error) };
  return { name: 'Error', message: String(error) };
}

export function deserializeError(data: SerializedError): Error {
  if (data.name === 'CancelledError') return new CancelledError(data.details);
  const known = classes[data.name as keyof typeof classes];
  if (known && data.summary !== undefined) return new known(data.summary, data.details);
  const error = new Error(data.message);
  error.name = data.name;
  if (data.stack) error.stack = data.stack;
  return Object.assign(error, data.system);
}

function systemFacts(error: Error): SerializedError['system'] {
  if (!('syscall' in error)) return undefined;
  const facts = Object.entries(error).filter(([name]) => ['code', 'syscall', 'path'].includes(name));
  return Object.fromEntries(facts.map(([name, value]) => [name, String(value)]));
}

/** Errors made by `sessionClosed`: they distinguish the end of a session from a cancel by the caller. */
const closings = new WeakSet<object>();

/** The error of work that still runs, or starts, in a closed session. */
export function sessionClosed(cause?: unknown): UsageError {
  const error = new UsageError('the session is closed', {
    advice: 'Close it once everything that runs in it has ended',
    cause,
  });
  closings.add(error);
  return error;
}

/**
 * The error of work that a signal has ended: CancelledError with the signal's reason as its cause, or that
 * reason itself if it is the error of a closed session.
 */
export function cancelledBy({ reason }: AbortSignal, details: ErrorDetails = {}): FactorFlowError {
  const isClosed = typeof reason === 'object' && reason !== null && closings.has(reason as object);
  return isClosed ? sessionClosed() : new CancelledError({ ...details, cause: reason });
}

/**
 * A path as messages show it: a web address without user, password, query and fragment, which may be secrets.
 */
export function publicPath(path: string): string {
  if (!/^https?:/i.test(path)) return path;
  const bare = path.replace(/[?#].*$/s, '');
  return bare.replace(/^(https?:\/*)[^/]*@/i, '$1');
}

/** A text of a library with its web addresses as publicPath shows them. */
export function publicText(text: string): string {
  return text.replace(
    /https?:\/\/[^\s"'<>]+/gi,
    (address) => publicPath(address) + (/[?#]/.test(address) ? (/[).,;:]+$/.exec(address)?.[0] ?? '') : ''),
  );
}

/** Throws the error of `cancelledBy` when the signal has fired. */
export function throwIfAborted(signal: AbortSignal | undefined, phase?: string): void {
  if (signal?.aborted) throw cancelledBy(signal, { phase });
}

/** A row as people count: the line of a text file, or the row from 1. */
export function rowText({ row, line }: Pick<ErrorDetails, 'row' | 'line'>): string | undefined {
  if (line !== undefined) return `line ${line}`;
  return row === undefined ? undefined : `row ${row + 1}`;
}

function compose(summary: string, details: ErrorDetails): string {
  const place = [
    details.file,
    details.rowGroup === undefined ? undefined : `row group ${details.rowGroup}`,
    rowText(details),
    details.column === undefined ? undefined : `column "${details.column}"`,
  ].filter((part) => part !== undefined);
  const head = details.phase === undefined ? '' : `${details.phase}: `;
  const where = place.length === 0 ? '' : ` (${place.join(', ')})`;
  return `${head}${summary}${where}${details.advice === undefined ? '' : `. ${details.advice}`}`;
}

/** The error for a thread that could not load one of its modules; undefined for other causes. */
export function missingFile(cause: unknown): UsageError | undefined {
  const { code, message } = (cause ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined;
  const [summary] = String(message).split('\n');
  return new UsageError(`a thread cannot start: ${summary}`, {
    advice: 'The installed package is incomplete: install it again',
    cause,
  });
}
