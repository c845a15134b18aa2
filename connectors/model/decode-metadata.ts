import { DataError } from '../../engine/errors.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import type { IdColumn } from './id-column.ts';

export const MODEL_CLASS = 'org.apache.spark.ml.recommendation.ALSModel';

/** Version of FactorFlow's part of the metadata, and of the folders that it describes. */
export const MODEL_FORMAT = 1;

/**
 * CRC-32 of each file of a model, in eight hexadecimal digits, by its path in the folder. The metadata and the
 * item index are not among them: they contain checksums of their own.
 */
export type FileDigests = Readonly<Record<string, string>>;

/**
 * Key in the footer of a part file: the CRC-32 of all bytes before the footer. Continued over the footer, it
 * is the file's digest, so a page compares the digest without reading the whole file.
 */
export const BODY_SUM = 'factorflow.crc32';

/** Names of the model's columns in training and in predictions. */
export interface ModelColumns {
  readonly user: string;
  readonly item: string;
  readonly rating: string;
  readonly prediction: string;
}

/** A column of attributes; further members say how its values become features. */
export type StoredColumn = JsonObject & {
  readonly name: string;
  /** Its first feature, and their number. Feature 0 is the constant; the columns follow in order. */
  readonly first: number;
  readonly features: number;
};

/** How attributes of a side become features, without the values of the features. */
export type StoredEncoding = JsonObject & {
  /** The column of ids. */
  readonly id: string;
  readonly columns: readonly StoredColumn[];
  /** The coefficients of the constant, for a page, which reads no others. */
  readonly constant?: readonly number[];
};

export type ColdStartStrategy = 'nan' | 'drop';

/** A model without its factors. */
export interface ModelMetadata {
  readonly rank: number;
  readonly columns: ModelColumns;
  readonly coldStartStrategy: ColdStartStrategy;
  /** FactorFlow's own metadata: configuration of the training, plan, metrics, ... */
  readonly factorflow: JsonObject;
}

/** Counts and types of the stored ids; absent from models that Spark wrote. */
export interface ModelStorage {
  readonly users: number;
  readonly items: number;
  readonly userIdType: IdColumn['type'];
  readonly itemIdType: IdColumn['type'];
  /** True if the model has the number of ratings of each item. */
  readonly itemCounts?: boolean;
  /** True if the model has the number of ratings of each user. */
  readonly userCounts?: boolean;
  /** True if the model has damped means. */
  readonly means?: boolean;
  /** True if the model has what each user has rated. */
  readonly histories?: boolean;
  /** Present if the model has coefficients of attributes. */
  readonly attributes?: Readonly<Partial<Record<'user' | 'item', StoredEncoding>>>;
  /** Absent from models of releases that did not store digests. */
  readonly files?: FileDigests;
}

/** Largest accepted rank, above any real model, so that damaged metadata cannot exhaust memory. */
const LARGEST_RANK = 1 << 16;

/** Most features of attributes, likewise. */
const LARGEST_FEATURES = 1 << 28;

/** Values of Spark's parameters that a model does not set. */
export const defaults = {
  userCol: 'user',
  itemCol: 'item',
  predictionCol: 'prediction',
  coldStartStrategy: 'nan',
  blockSize: 4096,
} as const;

const CHECKSUM = /,"checksum":"([0-9a-f]{8})"\}$/;

/** The checksum in a line, and the checksum computed from it; undefined if the writer stored none. */
function checksumsOf(line: string): { readonly stored: string; readonly found: string } | undefined {
  const member = CHECKSUM.exec(line);
  if (member === null) return undefined;
  return { stored: member[1], found: hexOf(crc32OfText(`${line.slice(0, member.index)}}`)) };
}

export function hexOf(sum: number): string {
  return sum.toString(16).padStart(8, '0');
}

/** Decodes the line of a metadata file. Throws DataError. */
export function decodeMetadata(
  line: string,
  file: string,
): { metadata: ModelMetadata; storage: ModelStorage | undefined } {
  const problem = (summary: string, advice?: string) =>
    new DataError(summary, { phase: 'load', file, advice });
  const all = decodeObject(line, problem);
  requireFormat(all, problem);
  const sums = checksumsOf(line);
  if (sums !== undefined && sums.found !== sums.stored)
    throw problem(
      `the metadata are damaged or were edited: their checksum is ${sums.found}, and they say ${sums.stored}`,
      'Copy or save the model again',
    );
  if (all.class !== MODEL_CLASS)
    throw problem(`the class is ${JSON.stringify(all.class ?? null)}, need ${MODEL_CLASS}`);
  const rank = decodeRank(all, problem);
  const { columns, coldStartStrategy } = decodeParams(all, problem);
  const { storage, ...factorflow } = isObject(all.factorflow) ? all.factorflow : {};
  const rating = isObject(storage) && typeof storage.ratingCol === 'string' ? storage.ratingCol : 'rating';
  return {
    metadata: { rank, columns: { ...columns, rating }, coldStartStrategy, factorflow },
    storage: decodeStorage(storage),
  };
}

type Problem = (summary: string, advice?: string) => DataError;

/** A newer version may also store the checksum in another way, so this is checked before the checksum. */
function requireFormat({ factorflow }: JsonObject, problem: Problem): void {
  const format = isObject(factorflow) ? factorflow.format : undefined;
  if (typeof format === 'number' && format > MODEL_FORMAT)
    throw problem(
      `the model was written by a newer version of FactorFlow: its format is ${format}, this version reads ${MODEL_FORMAT}`,
      'Update FactorFlow',
    );
}

function decodeObject(line: string, problem: Problem): JsonObject {
  let all: Json;
  try {
    all = JSON.parse(line) as Json;
  } catch {
    throw problem('the metadata are not JSON');
  }
  if (!isObject(all)) throw problem('the metadata are not a JSON object');
  return all;
}

function decodeRank({ rank }: JsonObject, problem: Problem): number {
  if (typeof rank === 'number' && Number.isInteger(rank) && rank >= 1 && rank <= LARGEST_RANK) return rank;
  throw problem(`the rank is ${JSON.stringify(rank ?? null)}, need an integer from 1 to ${LARGEST_RANK}`);
}

/** Spark's parameters: values of the model, else defaults. */
function decodeParams(
  { defaultParamMap, paramMap }: JsonObject,
  problem: Problem,
): { columns: Omit<ModelColumns, 'rating'>; coldStartStrategy: ColdStartStrategy } {
  const params: JsonObject = {
    ...defaults,
    ...(isObject(defaultParamMap) && defaultParamMap),
    ...(isObject(paramMap) && paramMap),
  };
  const text = (name: keyof typeof defaults) => {
    const value = params[name];
    if (typeof value === 'string') return value;
    throw problem(`the parameter ${name} is ${JSON.stringify(value ?? null)}, need a string`);
  };
  const coldStartStrategy = text('coldStartStrategy').toLowerCase();
  if (coldStartStrategy !== 'nan' && coldStartStrategy !== 'drop')
    throw problem(`coldStartStrategy is "${coldStartStrategy}", need "nan" or "drop"`);
  const columns = { user: text('userCol'), item: text('itemCol'), prediction: text('predictionCol') };
  return { columns, coldStartStrategy };
}

function decodeStorage(storage: Json | undefined): ModelStorage | undefined {
  if (!isObject(storage)) return undefined;
  const {
    users,
    items,
    userIdType,
    itemIdType,
    itemCounts,
    userCounts,
    means,
    histories,
    attributes,
    files,
  } = storage;
  if (
    typeof users !== 'number' ||
    typeof items !== 'number' ||
    !isIdType(userIdType) ||
    !isIdType(itemIdType)
  )
    return undefined;
  return {
    users,
    items,
    userIdType,
    itemIdType,
    itemCounts: itemCounts === true,
    userCounts: userCounts === true,
    means: means === true,
    histories: histories === true,
    ...(isEncodings(attributes) && { attributes }),
    ...(isDigests(files) && { files }),
  };
}

/** Accepts only features that follow one another. */
function isEncodings(sides: Json | undefined): sides is ModelStorage['attributes'] & JsonObject {
  const isEncoding = (side: Json | undefined) => {
    if (!isObject(side) || typeof side.id !== 'string' || !Array.isArray(side.columns)) return false;
    let next = 1;
    return side.columns.every((column: Json) => {
      if (!isObject(column) || typeof column.name !== 'string' || column.first !== next) return false;
      const features = Number(column.features);
      next += features;
      return Number.isSafeInteger(features) && features >= 0 && next <= LARGEST_FEATURES;
    });
  };
  return (
    isObject(sides) &&
    (['user', 'item'] as const).every((side) => !(side in sides) || isEncoding(sides[side]))
  );
}

/** Accepts only paths of files in a folder of the model. */
function isDigests(files: Json | undefined): files is FileDigests {
  return (
    isObject(files) &&
    Object.entries(files).every(
      ([path, digest]) => /^\w+\/[\w-][\w.-]*$/.test(path) && typeof digest === 'string',
    )
  );
}

function isIdType(value: Json | undefined): value is IdColumn['type'] {
  return value === 'int32' || value === 'int64' || value === 'utf8';
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const POLYNOMIAL = 0xedb8_8320;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ POLYNOMIAL : sum >>> 1;
  return sum;
});

/** The CRC-32 of a text in UTF-8, as zlib computes it; pages have no zlib. */
export function crc32OfText(text: string): number {
  return crc32OfBytes(new TextEncoder().encode(text));
}

/** The CRC-32 of bytes that follow bytes of which `sum` is the CRC-32. */
export function crc32OfBytes(bytes: Uint8Array, sum = 0): number {
  let rest = sum ^ 0xffff_ffff;
  for (const byte of bytes) rest = table[(rest ^ byte) & 255] ^ (rest >>> 8);
  return (rest ^ 0xffff_ffff) >>> 0;
}

/** Stored numbers of ratings as integers. Throws DataError for a value that is not a count. */
export function wholeCounts(counts: Float32Array, folder: string): Uint32Array {
  const wrong = counts.find((count) => !Number.isInteger(count) || count < 0 || count >= 2 ** 32);
  if (wrong !== undefined)
    throw new DataError(`a number of ratings is ${wrong}, need a whole number from 0`, {
      phase: 'load',
      file: folder,
      advice: 'Train the model again',
    });
  return Uint32Array.from(counts);
}
