import type { Vector } from 'apache-arrow';
import { createHash } from 'node:crypto';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import { join, resolve, relative, sep } from 'node:path';
import { crc32 } from 'node:zlib';
import { DataError, throwIfAborted, UsageError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { RunMetrics } from '../../engine/metrics.ts';
import { readRegular, closeReader } from '../../engine/regular-file.ts';
import { type RowParts, wholeRows } from '../../engine/row-parts.ts';
import type { Executor } from '../../engine/run/device.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { fileProblem } from '../files/file-problem.ts';
import { refuseAddress, isUrl } from '../files/path-kinds.ts';
import { openRandomAccess, readExactly } from '../files/random-access.ts';
import { bytesFrom } from '../files/stored-bytes.ts';
import { atomicOutput, type AtomicOutputOptions, checkOutput } from '../output/atomic-output.ts';
import type { WritingContext } from '../output/checked-sink.ts';
import { isBeingReplaced, recoverInput, recoverOutput } from '../output/temporaries.ts';
import { ParquetSink } from '../parquet/parquet-sink.ts';
import { isDatasetEntry } from '../parquet/part-names.ts';
import {
  attributeFolders,
  type AttributeSide,
  readAttributes,
  type StoredAttributes,
  writeAttributes,
} from './attribute-table.ts';
import {
  crc32OfText,
  decodeMetadata,
  defaults,
  hexOf,
  MODEL_CLASS,
  type ModelMetadata,
  type ModelStorage,
  wholeCounts,
  BODY_SUM,
  type FileDigests,
} from './decode-metadata.ts';
import { readFactors } from './factor-table.ts';
import { idCount, idVector } from './id-column.ts';
import { isIndexEntry } from './item-index-file.ts';
import { bytesOf, type SavedSide, saveSides, tableOf } from './save-sides.ts';
import type { FactorTable } from './write-factors.ts';

type StoredSides = Readonly<Partial<Record<AttributeSide, StoredAttributes>>>;

/** A model in the layout of Spark's ALSModel. */
export interface StoredModel extends ModelMetadata {
  /** Int32, Int64 or Utf8, ascending (text by bytes), without nulls. */
  readonly userIds: Vector;
  /** Row-major, rows x rank, in the order of the ids. */
  readonly userFactors: Float32Array;
  readonly itemIds: Vector;
  readonly itemFactors: Float32Array;
  /** Ratings of each item; absent from models of Spark and of older releases. */
  readonly itemCounts?: Uint32Array;
  /** Ratings of each user; stored if users have attributes. */
  readonly userCounts?: Uint32Array | undefined;
  /** Damped mean of each id; absent from models of other programs. */
  readonly means?: { readonly users: Float32Array; readonly items: Float32Array };
  /** Attributes of users or items, by which those without ratings get factors. */
  readonly attributes?: StoredSides | undefined;
  /** True if the metadata had digests of the files, which were compared. */
  readonly hasDigests?: boolean;
  /** True if the folder has what each user has rated, which is read on demand. */
  readonly hasHistories?: boolean;
}

/** A model to save; its factors may be in parts. `histories`: see writeHistories. */
export type SavedModel = Omit<StoredModel, 'userFactors' | 'itemFactors' | 'hasDigests' | 'hasHistories'> &
  Readonly<Record<'userFactors' | 'itemFactors', Float32Array | RowParts>> & {
    readonly histories?: BatchStream | undefined;
  };

export interface SaveModelOptions {
  /** Replaces an existing model. Other files and folders are never replaced. */
  readonly overwrite?: boolean;
  /** Milliseconds since 1970, for the metadata. Default 0, so that the same model gives the same bytes. */
  readonly timestamp?: number;
  readonly uid?: string;
  /** Cancels the save: nothing is written, and an existing model is kept. */
  readonly signal?: AbortSignal;
  /**
   * Executor whose CPU device writes the part files in parallel. Without it, the calling thread writes them.
   */
  readonly executor?: Executor;
  readonly metrics?: RunMetrics;
  /** See SaveSidesOptions. */
  readonly underWay?: (() => void) | undefined;
}

/** Most retries when the model is replaced while it is read. */
const MOST_ATTEMPTS = 100;

const folders = ['metadata', 'userFactors', 'itemFactors'] as const;
/**
 * Folders for numbers of one float for each id, in the same layout as factors of rank 1. They are separate
 * folders, since Spark's `recommendForAll` accepts no further columns in userFactors or itemFactors.
 */
const countsFolders = { users: 'userCounts', items: 'itemCounts' } as const;
const meansFolders = { users: 'userMeans', items: 'itemMeans' } as const;

/**
 * Writes <directory>/metadata, userFactors and itemFactors, and userCounts, itemCounts, userMeans, itemMeans,
 * userAttributes and itemAttributes if the model has them. Writes to a temporary sibling, which is renamed when it is complete and on the disk. The
 * same model (and timestamp) gives the same bytes.
 */
export async function saveModel(
  directory: string,
  model: SavedModel,
  options: SaveModelOptions = {},
): Promise<void> {
  const users = tableOf('user', model.userIds, model.userFactors, model.rank);
  const items = tableOf('item', model.itemIds, model.itemFactors, model.rank);
  const storage = {
    users: idCount(users.ids),
    items: idCount(items.ids),
    userIdType: users.ids.type,
    itemIdType: items.ids.type,
    ...(model.itemCounts ? { itemCounts: true } : {}),
    ...(model.userCounts ? { userCounts: true } : {}),
    ...(model.means ? { means: true } : {}),
    ...(model.histories ? { histories: true } : {}),
    ...(model.attributes ? { attributes: encodingsOf(model.attributes) } : {}),
  };
  const { signal = new AbortController().signal } = options;
  throwIfAborted(signal, 'save');
  const output = await atomicOutput(directory, outputOptions(options.overwrite));
  const column = (values: ArrayLike<number>) =>
    wholeRows(values instanceof Float32Array ? values : Float32Array.from(values), 1);
  const { itemCounts, userCounts, means } = model;
  const counts = (folder: string, ids: FactorTable['ids'], values: ArrayLike<number> | undefined) =>
    values ? [{ folder, table: { ids, factors: column(values) } }] : [];
  const sides: readonly SavedSide[] = [
    { folder: 'userFactors', table: users },
    { folder: 'itemFactors', table: items },
    ...counts(countsFolders.users, users.ids, userCounts),
    ...counts(countsFolders.items, items.ids, itemCounts),
    ...(means
      ? [
          { folder: meansFolders.users, table: { ids: users.ids, factors: column(means.users) } },
          { folder: meansFolders.items, table: { ids: items.ids, factors: column(means.items) } },
        ]
      : []),
  ];
  try {
    await saveSides(output.temporary, sides, options);
    if (model.histories) await writeHistories(output.temporary, model.histories, { ...options, signal });
    for (const [side, attributes] of sidesWith(model.attributes))
      await writeAttributes(output.temporary, side, attributes, { ...options, signal });
    throwIfAborted(options.signal, 'save');
    // The metadata are written last, since a folder without metadata does not count as a model, and since they
    // contain the digests of all files that are in the folder by now.
    const files = await digestsIn(output.temporary);
    const line = encodeMetadata(model, { ...storage, files }, options.timestamp ?? 0, options.uid);
    await mkdir(join(output.temporary, 'metadata'));
    await writeFile(join(output.temporary, 'metadata', 'part-00000'), `${line}\n`);
    await output.commit();
  } catch (error) {
    throw await output.fail(fileProblem(error, 'save', directory), bytesOf(sides));
  }
}

/** Throws UsageError, before any training, if a model may not be saved to the directory. */
export async function checkModelDirectory(directory: string, overwrite = false): Promise<void> {
  await checkOutput(directory, outputOptions(overwrite));
}

/**
 * Reads a model that FactorFlow or Spark saved. Throws DataError that names a missing or wrong file. If
 * another process replaces the model meanwhile, it is read again, so that users and items are of the same
 * model.
 */
export async function loadModel(directory: string): Promise<StoredModel> {
  refuseAddress(directory, 'load');
  if (isUrl(directory))
    throw new UsageError('a model is a folder, which is not read from a web server', {
      phase: 'load',
      file: directory,
      advice: 'Download it first',
    });
  await recoverInput(directory);
  await recoverOutput(resolve(directory));
  for (let attempt = 1; ; attempt++) {
    const before = await identityOf(directory);
    const outcome = await readModel(directory).then(
      (model) => ({ model }),
      (error: unknown) => ({ error }),
    );
    if (
      before === (await identityOf(directory)) &&
      !(before === undefined && (await isBeingReplaced(resolve(directory))))
    ) {
      if ('model' in outcome) return outcome.model;
      throw outcome.error;
    }
    if (attempt === MOST_ATTEMPTS)
      throw new DataError('other processes keep replacing the model', {
        phase: 'load',
        file: directory,
        advice: 'Load it when they have ended',
      });
  }
}

/** Metadata of a model, and the size of its folder. */
export interface ModelHead {
  readonly metadata: ModelMetadata;
  /** Absent from models that Spark wrote. */
  readonly storage: ModelStorage | undefined;
  readonly bytes: number;
}

/** Reads a model's metadata without its factors. Throws DataError that names a missing or wrong file. */
export async function readModelHead(directory: string): Promise<ModelHead> {
  await recoverInput(directory);
  await recoverOutput(resolve(directory));
  await requireFolders(directory);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  return {
    ...(await readMetadata(join(directory, 'metadata'))),
    bytes: sizes.reduce((sum, size) => sum + size, 0),
  };
}

/** True for a folder with metadata and factors of a model, even if other files are missing. */
export async function isModelFolder(directory: string): Promise<boolean> {
  const has = async (name: string) =>
    (await stat(join(directory, name)).catch(() => undefined))?.isDirectory() === true;
  const [metadata, ...factors] = await Promise.all(folders.map(has));
  return metadata && factors.some((found) => found);
}

/**
 * A text that identifies the folder at this path; a folder that replaces it has another. Undefined if there
 * is no folder.
 */
async function identityOf(directory: string): Promise<string | undefined> {
  const found = await stat(directory, { bigint: true }).catch(() => undefined);
  return found && `${found.dev} ${found.ino} ${found.birthtimeNs}`;
}

async function readModel(directory: string): Promise<StoredModel> {
  await requireFolders(directory);
  const { metadata, storage } = await readMetadata(join(directory, 'metadata'));
  const users = await readFactors(
    join(directory, 'userFactors'),
    metadata.rank,
    storage && { rows: storage.users, type: storage.userIdType },
  );
  const items = await readFactors(
    join(directory, 'itemFactors'),
    metadata.rank,
    storage && { rows: storage.items, type: storage.itemIdType },
  );
  const means = storage?.means
    ? {
        users: await readNumbers(join(directory, meansFolders.users), users),
        items: await readNumbers(join(directory, meansFolders.items), items),
      }
    : undefined;
  const countsOf = async (folder: string, side: FactorTable) =>
    wholeCounts(await readNumbers(join(directory, folder), side), join(directory, folder));
  const userCounts = storage?.userCounts ? await countsOf(countsFolders.users, users) : undefined;
  const itemCounts = storage?.itemCounts ? await countsOf(countsFolders.items, items) : undefined;
  const attributes: Partial<Record<AttributeSide, StoredAttributes>> = {};
  for (const [side, encoding] of sidesWith(storage?.attributes))
    attributes[side] = await readAttributes(directory, side, encoding, metadata.rank);
  // After the tables, whose own errors name the row or page of damage.
  if (storage?.files !== undefined) await requireDigests(directory, storage.files);
  requireFiniteProducts(users.factors, items.factors, metadata.rank, directory);
  return {
    ...metadata,
    hasDigests: storage?.files !== undefined,
    userIds: idVector(users.ids),
    userFactors: users.factors,
    itemIds: idVector(items.ids),
    itemFactors: items.factors,
    itemCounts,
    userCounts,
    means,
    attributes: storage?.attributes && attributes,
    hasHistories: storage?.histories === true,
  };
}

/** The sides of a record that are there. */
function sidesWith<T>(sides: Readonly<Partial<Record<AttributeSide, T>>> = {}): [AttributeSide, T][] {
  return Object.entries(sides) as [AttributeSide, T][];
}

function encodingsOf(sides: StoredSides): NonNullable<ModelStorage['attributes']> {
  return Object.fromEntries(
    sidesWith(sides).map(([side, { encoding, coefficients, weights }]) => {
      const constant = Array.from(coefficients.subarray(0, coefficients.length / weights.length));
      return [side, { ...encoding, constant }];
    }),
  );
}

/** Reads one number for each id of a side. */
async function readNumbers(folder: string, side: FactorTable): Promise<Float32Array> {
  return (await readFactors(folder, 1, { rows: idCount(side.ids), type: side.ids.type })).factors;
}

function outputOptions(overwrite: boolean | undefined): AtomicOutputOptions {
  return { kind: 'folder', overwrite, recognizes: isModelEntry, durable: true };
}

/** True for the relative path of a file that belongs to a model. */
function isModelEntry(path: string): boolean {
  if (isIndexEntry(path)) return true;
  const [folder, ...rest] = path.split('/');
  const others = [
    HISTORIES,
    ...Object.values(countsFolders),
    ...Object.values(meansFolders),
    ...Object.values(attributeFolders),
  ];
  if (![...folders, ...others].some((name) => name === folder)) return false;
  const inside = rest.join('/');
  return inside === '' || inside.startsWith('part-') || isDatasetEntry(inside);
}

async function requireFolders(directory: string): Promise<void> {
  for (const path of [directory, ...folders.map((folder) => join(directory, folder))]) {
    try {
      if ((await stat(path)).isDirectory()) continue;
    } catch (error) {
      const problem = fileProblem(error, 'load', path);
      if (path === directory || !(problem instanceof DataError)) throw problem;
    }
    throw new DataError(
      path === directory ? 'this is a file, not a model' : 'this is not a model: the folder is missing',
      { phase: 'load', file: path },
    );
  }
}

const LARGEST = 2 ** 128 - 2 ** 103;

/**
 * Throws DataError if a feature of a user times the same feature of an item exceeds the largest float32, so
 * that the score of the two cannot be computed.
 */
function requireFiniteProducts(
  users: Float32Array,
  items: Float32Array,
  rank: number,
  directory: string,
): void {
  // Almost always enough, and fast.
  if (largestOf(users) * largestOf(items) <= LARGEST) return;
  const [ofUsers, ofItems] = [largestOfColumns(users, rank), largestOfColumns(items, rank)];
  const feature = ofUsers.findIndex((size, k) => size * ofItems[k] > LARGEST);
  if (feature < 0) return;
  throw new DataError(
    `feature ${feature} is up to ${ofUsers[feature]} for users and ${ofItems[feature]} for items, whose product exceeds float32`,
    { phase: 'load', file: directory, advice: 'Train the model on ratings of a smaller scale' },
  );
}

function largestOf(values: Float32Array): number {
  let largest = 0;
  for (let at = 0; at < values.length; at++) {
    const size = Math.abs(values[at]);
    if (size > largest) largest = size;
  }
  return largest;
}

/** The largest |value| of each column of a matrix. */
function largestOfColumns(values: Float32Array, columns: number): Float64Array {
  const largest = new Float64Array(columns);
  for (let at = 0; at < values.length;)
    for (let k = 0; k < columns; k++, at++) largest[k] = Math.max(largest[k], Math.abs(values[at]));
  return largest;
}

/** Most bytes of a metadata file, far above the size of the largest plan. */
const MOST_BYTES = 2 ** 28;
const SPARK_VERSION = '3.5.0';

/** The only line of <model>/metadata/part-00000, without the newline. The same model gives the same line. */
function encodeMetadata(
  model: ModelMetadata,
  storage: ModelStorage,
  timestamp: number,
  uid?: string,
): string {
  const { columns, coldStartStrategy } = model;
  const sparkReadable = storage.userIdType === 'int32' && storage.itemIdType === 'int32';
  const paramMap = {
    userCol: columns.user,
    itemCol: columns.item,
    predictionCol: columns.prediction,
    coldStartStrategy,
  };
  const reason = `Spark's ALSModel knows int32 ids only; these are ${storage.userIdType} (users) and ${storage.itemIdType} (items)`;
  const factorflow = {
    ...model.factorflow,
    storage: { ...storage, ratingCol: columns.rating, sparkReadable, ...(!sparkReadable && { reason }) },
  };
  const name =
    uid ??
    `ALSModel_${createHash('sha256')
      .update(JSON.stringify([paramMap, model.rank, factorflow]))
      .digest('hex')
      .slice(0, 12)}`;
  return withChecksum({
    class: MODEL_CLASS,
    timestamp,
    sparkVersion: SPARK_VERSION,
    uid: name,
    paramMap,
    defaultParamMap: defaults,
    rank: model.rank,
    factorflow,
  });
}

/**
 * The object as a line. Its last member is the CRC-32 of the line without that member, so damage is found.
 */
function withChecksum(metadata: JsonObject): string {
  const line = JSON.stringify(metadata);
  return `${line.slice(0, -1)},"checksum":"${hexOf(crc32OfText(line))}"}`;
}

/** Reads the line from the first of the files <folder>/part-* that has one. */
async function readMetadata(
  folder: string,
): Promise<{ readonly metadata: ModelMetadata; readonly storage: ModelStorage | undefined }> {
  try {
    const names = (await readdir(folder)).filter((name) => name.startsWith('part-')).sort();
    for (const name of names) {
      const line = Buffer.from(readRegular(join(folder, name), MOST_BYTES, { phase: 'load' }))
        .toString()
        .split('\n')
        .find((text) => text.trim() !== '');
      if (line !== undefined) return decodeMetadata(line, join(folder, name));
    }
  } catch (error) {
    throw fileProblem(error, 'load', folder);
  }
  throw new DataError('the model has no metadata (no line in any part-* file)', {
    phase: 'load',
    file: folder,
  });
}

/** Bytes of a Parquet file after its footer: the footer's length, and the text PAR1. */
const END = 8;

/** Digests of all files in a folder that were just written, in the order of their paths. */
async function digestsIn(directory: string): Promise<FileDigests> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const digests: Record<string, string> = {};
  for (const file of files)
    digests[relative(directory, file).replaceAll(sep, '/')] =
      (await ownDigest(file)) ?? (await digestOf(file));
  return digests;
}

/** Throws DataError for a file of a model that is damaged, or that was saved with another model. */
async function requireDigests(directory: string, digests: FileDigests): Promise<void> {
  for (const [name, stored] of Object.entries(digests)) {
    const file = join(directory, name);
    const found = await digestOf(file);
    if (found !== stored)
      throw new DataError(
        `the file is damaged or belongs to another model: its checksum is ${found}, and the metadata say ${stored}`,
        { phase: 'load', file, advice: 'Copy the whole model again' },
      );
  }
}

/**
 * The digest of a part file, from its footer, which stores the sum of the bytes before it: a second pass over
 * a large model's files takes a second per GB. Undefined for other files.
 */
async function ownDigest(file: string): Promise<string | undefined> {
  if (!file.endsWith('.parquet')) return undefined;
  const handle = await openRandomAccess(file);
  try {
    const { size } = await handle.stat();
    const tail = async (bytes: number) => Buffer.from(await readExactly(handle, file, size - bytes, bytes));
    const footer = await tail(END + (await tail(END)).readUInt32LE(0));
    const notes = parquetMetadata(footer, { geoparquet: false }).key_value_metadata;
    const body = notes?.find(({ key }) => key === BODY_SUM)?.value;
    return body === undefined ? undefined : hexOf(crc32(footer, Number.parseInt(body, 16)));
  } catch (error) {
    throw fileProblem(error, 'save', file);
  } finally {
    await closeReader(handle);
  }
}

async function digestOf(file: string): Promise<string> {
  let sum = 0;
  for await (const bytes of bytesFrom(file, 0, Number.POSITIVE_INFINITY)) sum = crc32(bytes, sum);
  return hexOf(sum);
}

/**
 * Folder of a model with what each user has rated: {id, items: list of ids, weights: list of float}. A folder
 * of its own, like the means: Spark's `recommendForAll` accepts no further columns in userFactors.
 */
export const HISTORIES = 'userHistories';

/** Rows of a row group, which memory holds while it is written. */
const ROW_GROUP_USERS = 1 << 14;

/** Writes lists by ascending id into the folder of a model. */
async function writeHistories(
  directory: string,
  lists: BatchStream,
  ctx: Omit<WritingContext, 'events'>,
): Promise<void> {
  const sink = new ParquetSink(join(directory, HISTORIES), { rowGroupSize: ROW_GROUP_USERS });
  await sink.consume(lists, { ...ctx, events: noEvents });
}
