import type { ByteCursor } from '../../connectors/compression/byte-cursor.ts';
import { UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { AlsParams, SizedAlsParams } from '../../operators/als/als-params.ts';
import type { SparkStart } from '../../operators/als/start.ts';
import type { Model } from '../model.ts';
import type { SessionOptions } from '../session-options.ts';
import type { Session } from '../session.ts';

export const PROTOCOL = 1;

/** The first line that a parent process sends: a JSON object with the command and its options. */
export interface Opening {
  readonly command: (typeof commands)[number];
  /** Of the command train. */
  readonly algorithm: (typeof algorithms)[number];
  readonly params: Partial<AlsParams>;
  readonly columns: { readonly user: string; readonly item: string; readonly rating: string };
  /** Number of ratings to expect; undefined if only the trailer contains it. */
  readonly rows: number | undefined;
  /** The folder of this training's checkpoints, from which it continues; undefined for none. */
  readonly checkpoints: { readonly dir: string; readonly interval: number } | undefined;
  /** The initial factors that Spark's ALS would draw, of the command train; undefined for FactorFlow's own. */
  readonly sparkStart: SparkStart | undefined;
  /** Milliseconds between signs of life on stderr; undefined for none. */
  readonly heartbeat: number | undefined;
  /** Numbers of rows that workers exchange, of the command rows. */
  readonly exchange: RowPrecision;
}

export type RowPrecision = 'float32' | 'float16';

/** The facts about a training of which a worker holds blocks of rows. */
export type RowTraining = Pick<Opening, 'columns' | 'exchange'> & { readonly params: SizedAlsParams };

/** Most bytes of the line. */
const LONGEST = 1 << 20;

const SHORTEST_BEAT = 10;
const LONGEST_BEAT = 60_000;

const algorithms = ['als', 'sgd'] as const;
const commands = ['train', 'rows', 'model'] as const;
const columnNames = ['user', 'item', 'rating'] as const;
const names =
  'protocol version command algorithm params columns rows checkpoints sparkStart heartbeat exchange';

/**
 * Reads and checks the first line of stdin. Throws UsageError that names the wrong field. `own`: the version
 * of this package.
 */
export async function readOpening(cursor: ByteCursor, own: string): Promise<Opening> {
  const line = await cursor.line(LONGEST);
  if (line === undefined)
    throw new UsageError('stdin ended before a first line of JSON arrived', {
      advice: 'The command worker is for programs that follow its protocol',
    });
  const given = objectOf(parsed(Buffer.from(line).toString('utf8')), 'the first line');
  requireVersion(given, own);
  const { command, params = {}, columns = {}, rows } = given;
  refuseOthers('field', given, names.split(' '));
  const of = <T, U = undefined>(name: string, read: (value: unknown) => T, absent?: U) =>
    given[name] === undefined || given[name] === null ? (absent as U) : read(given[name]);
  if (!isCommand(command))
    throw new UsageError(`command must be train, rows or model, got ${shown(command)}`);
  if (rows !== undefined && rows !== null && !isCount(rows, 0))
    throw new UsageError(`rows must be a whole number or null, got ${shown(rows)}`);
  return {
    command,
    algorithm: of('algorithm', (value) => algorithmOf(value, command), 'als' as const),
    params: objectOf(params, 'params') as Partial<AlsParams>,
    columns: columnsOf(objectOf(columns, 'columns')),
    rows: typeof rows === 'number' ? rows : undefined,
    checkpoints: of('checkpoints', checkpointsOf),
    sparkStart: of('sparkStart', sparkStartOf),
    heartbeat: of('heartbeat', heartbeatOf),
    exchange: of('exchange', exchangeOf, 'float32' as const),
  };
}

function isCommand(value: unknown): value is Opening['command'] {
  return (commands as readonly unknown[]).includes(value);
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

function algorithmOf(value: unknown, command: Opening['command']): Opening['algorithm'] {
  const algorithm = algorithms.find((one) => one === value);
  if (algorithm === undefined) throw new UsageError(`algorithm must be als or sgd, got ${shown(value)}`);
  if (algorithm === 'als' || command === 'train') return algorithm;
  throw new UsageError(`the first line has algorithm sgd, which the command ${command} does not have`, {
    advice: 'SGD is trained on one host, by the command train',
  });
}

function checkpointsOf(value: unknown): NonNullable<Opening['checkpoints']> {
  const { dir, interval } = objectOf(value, 'checkpoints');
  if (typeof dir !== 'string' || dir === '')
    throw new UsageError(`checkpoints need a folder dir, got ${shown(dir)}`);
  if (isCount(interval, 1)) return { dir, interval };
  throw new UsageError(`checkpoints need a whole number interval from 1, got ${shown(interval)}`);
}

function sparkStartOf(value: unknown): SparkStart {
  const { seed, userBlocks } = objectOf(value, 'sparkStart');
  if (typeof seed !== 'string' || !/^-?\d{1,19}$/.test(seed))
    throw new UsageError(`sparkStart needs a seed, an int64 as text, got ${shown(seed)}`);
  if (isCount(userBlocks, 1)) return { seed: BigInt.asIntN(64, BigInt(seed)), userBlocks };
  throw new UsageError(`sparkStart needs a whole number userBlocks from 1, got ${shown(userBlocks)}`);
}

function exchangeOf(value: unknown): RowPrecision {
  if (value === 'float32' || value === 'float16') return value;
  throw new UsageError(`exchange must be float32 or float16, got ${shown(value)}`);
}

function heartbeatOf(value: unknown): number {
  if (typeof value === 'number' && value >= SHORTEST_BEAT && value <= LONGEST_BEAT) return value;
  throw new UsageError(
    `heartbeat must be from ${SHORTEST_BEAT} to ${LONGEST_BEAT} milliseconds, got ${shown(value)}`,
  );
}

/** Throws UsageError if the parent uses another protocol, or expects another version. */
function requireVersion({ protocol, version }: JsonObject, own: string): void {
  if (protocol !== PROTOCOL)
    throw new UsageError(`the parent speaks protocol ${shown(protocol)}, this worker ${PROTOCOL}`, {
      advice: `Install the same version on both sides; the worker is factorflow ${own}`,
    });
  if (version !== undefined && version !== own)
    throw new UsageError(`the parent expects factorflow ${shown(version)}, and this is ${own}`, {
      advice: 'Install the same version on both sides',
    });
}

function columnsOf(named: JsonObject): Opening['columns'] {
  refuseOthers('column', named, columnNames);
  const nameOf = (column: (typeof columnNames)[number]) => {
    const name = named[column] ?? column;
    if (typeof name !== 'string')
      throw new UsageError(`the column of ${column} must be a text, got ${shown(name)}`);
    return name;
  };
  return { user: nameOf('user'), item: nameOf('item'), rating: nameOf('rating') };
}

function refuseOthers(what: string, given: JsonObject, known: readonly string[]): void {
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other !== undefined)
    throw new UsageError(`unknown ${what} ${other} in the first line`, {
      advice: `There are: ${known.join(', ')}`,
    });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('the first line is no JSON', {
      advice: 'The command worker is for programs that follow its protocol',
    });
  }
}

export function objectOf(value: unknown, name: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new UsageError(`${name} must be a JSON object, got ${shown(value)}`);
}

/** The parts of a worker that differ from run to run. */
export interface ServeOptions {
  readonly machine: Omit<SessionOptions, 'signal'>;
  readonly signal: AbortSignal;
  /** The version of this package. */
  readonly version: string;
  /** Makes the frame `report` of a trained model. */
  readonly report: (model: Model, session: Session) => JsonObject;
  /** Describes an error for the parent: code, exit code, texts. */
  readonly failure: (error: unknown) => JsonObject;
  /** Starts signs of life at an interval that the parent has chosen. */
  readonly beat: (milliseconds: number) => void;
}
