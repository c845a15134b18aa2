import { type Data, DataType, type Decimal, Field, Int32, Int64, Schema, Utf8 } from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { shown } from '../../../engine/format.ts';
import { keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import type { KeyType } from '../../../engine/keys/key-column.ts';
import { nearest, spelled } from '../../../engine/nearest.ts';
import { fromHalf } from '../../../engine/numbers/half.ts';
import { LEFT_OUT } from '../../../engine/stream/stream.ts';
import { plainValues } from '../../../engine/values/plain-values.ts';
import {
  agreedNames,
  type ColumnNames,
  type ColumnRole,
  isNamedLike,
  roleOptions,
  usualNames,
  type WantedColumns,
} from './column-names.ts';
import { PLAIN_NUMBER, timeIn } from './time-in.ts';

/** Field of a column. Throws DataError that names the existing columns. */
export function fieldOf(schema: Schema, column: string): Field {
  if (typeof column !== 'string')
    throw new UsageError(`the name of a column is a text, got ${shown(column)}`);
  const field = schema.fields.find((candidate) => candidate.name === column);
  if (field) return field;
  const guess = nearest(
    column,
    schema.fields.map(({ name }) => name),
  );
  throw new DataError(`there is no column "${column}"; there are: ${columnNames(schema)}`, {
    phase: 'read',
    advice: spelled(guess, 'Name the columns with userCol, itemCol, ratingCol and timestampCol'),
  });
}

export function columnNames(schema: Schema): string {
  const leftOut = schema.metadata.get(LEFT_OUT);
  const names = schema.fields.map((field) => `${field.name} (${field.type})`).join(', ') || 'none';
  return leftOut === undefined ? names : `${names}, and left out, ${leftOut}`;
}

/** Key type of an id column. Throws DataError if its type cannot be an id. */
export function keyTypeOfColumn(schema: Schema, column: string): KeyType {
  return keyTypeOf(fieldOf(schema, column).type, column);
}

export function arrowTypeOf(type: KeyType): Int32 | Int64 | Utf8 {
  if (type === 'int32') return new Int32();
  return type === 'int64' ? new Int64() : new Utf8();
}

/**
 * Throws DataError unless the column has numbers, text of numbers, or booleans. A column of times cannot be
 * ratings.
 */
export function requireRatings(schema: Schema, column: string): void {
  if (!schema.fields.some(({ name }) => name === column)) {
    throw new DataError(`there is no column "${column}"; there are: ${columnNames(schema)}`, {
      phase: 'read',
      advice:
        'Name the columns with userCol, itemCol, ratingCol and timestampCol; pairs without ratings are implicit data, for implicitPrefs: true',
    });
  }
  const { type } = fieldOf(schema, column);
  if (isNumeric(type) || DataType.isBool(type) || isText(type)) return;
  throw new DataError(`the column must hold numbers, but its type is ${type}`, { phase: 'read', column });
}

/** Throws DataError unless the column has times: numbers, timestamps, dates, or text of them. */
export function requireTimeValues(schema: Schema, column: string): void {
  const { type } = fieldOf(schema, column);
  if (isNumeric(type) || DataType.isTimestamp(type) || DataType.isDate(type) || isText(type)) return;
  throw new DataError(
    `the column must hold times: numbers, dates or text of dates, but its type is ${type}`,
    { phase: 'read', column },
  );
}

export function isNumeric(type: DataType): boolean {
  return DataType.isFloat(type) || DataType.isInt(type) || DataType.isDecimal(type);
}

/**
 * Values of a column of numbers as float32 or float64; a view if they already have that type. Elements at
 * nulls are undefined.
 */
export function numbersOf<T extends Float32Array | Float64Array>(
  data: Data,
  wanted: { new (length: number): T; readonly name: string },
): T {
  const values = data.values as unknown;
  if (values instanceof wanted) return values.subarray(0, data.length) as T;
  const result = new wanted(data.length);
  if (DataType.isDecimal(data.type)) fromDecimals(data.values as Uint32Array, data.type, result);
  else if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    for (let i = 0; i < data.length; i++) result[i] = Number(values[i]);
  } else if (DataType.isFloat(data.type) && values instanceof Uint16Array) {
    const halves = values.subarray(0, data.length);
    for (let i = 0; i < data.length; i++) result[i] = fromHalf(halves[i]);
  } else result.set((values as Float64Array).subarray(0, data.length));
  return result;
}

/**
 * Converts Arrow decimals to floating point. A decimal is a 128- or 256-bit integer divided by 10^scale,
 * stored as 32-bit words, lowest first, the highest signed: -1.5 with scale 1 is f1 ff ff ff | ff ff ff ff |
 * …. Integers up to 2^53 are converted with one rounding at most, larger ones with a few.
 */
function fromDecimals(
  words: Uint32Array,
  { bitWidth, scale }: Decimal,
  result: Float32Array | Float64Array,
): void {
  const width = bitWidth / 32;
  const unit = 10 ** scale;
  for (let i = 0; i < result.length; i++) {
    let value = words[(i + 1) * width - 1] | 0;
    for (let word = (i + 1) * width - 2; word >= i * width; word--) value = value * 2 ** 32 + words[word];
    result[i] = value / unit;
  }
}

/** Called for each row whose text cannot be converted, with the reason. */
export type OnRefusedText = (row: number, reason: string) => void;

/** True for text, including dictionaries of text. */
export function isText(type: DataType): boolean {
  const of: DataType = DataType.isDictionary(type) ? type.dictionary : type;
  return DataType.isUtf8(of) || DataType.isLargeUtf8(of);
}

/**
 * Numbers of a column of text or booleans (true is 1, false is 0). NaN for nulls and for texts that are not
 * numbers; each such text is also passed to `onRefused`.
 */
export function numbersOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, numberIn, 'is not a number', onRefused);
}

/**
 * Times of a column of text, in milliseconds since 1970 (see timeIn). NaN for nulls and for texts that are
 * not times; each such text is also passed to `onRefused`.
 */
export function timesOfTexts(data: Data, onRefused: OnRefusedText = () => {}): Float64Array {
  return valuesOf(data, timeIn, 'is not a time such as 2024-05-31 or 2024-05-31T12:00:00Z', onRefused);
}

function valuesOf(
  data: Data,
  read: (text: string) => number | undefined,
  problem: string,
  onRefused: OnRefusedText,
): Float64Array {
  const valueOf = plainValues(data);
  const values = new Float64Array(data.length).fill(Number.NaN);
  for (let row = 0; row < values.length; row++) {
    const value = valueOf(row);
    if (value === null) continue;
    const number = read(String(value));
    if (number === undefined) onRefused(row, `"${shortened(String(value))}" ${problem}`);
    else values[row] = number;
  }
  return values;
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

function numberIn(text: string): number | undefined {
  const trimmed = text.trim();
  if (PLAIN_NUMBER.test(trimmed)) return Number(trimmed);
  const truth = trimmed.toLowerCase();
  return truth === 'true' ? 1 : truth === 'false' ? 0 : undefined;
}

interface FoundColumns {
  readonly columns: ColumnNames;
  /**
   * Roles whose choice of column should be reported to the user: its name is neither given, nor preferred,
   * nor the default where nothing was preferred.
   */
  readonly recognised: readonly ColumnRole[];
}

/**
 * Finds the column of each role: the given name, else the preferred or default name if it exists, else the
 * only column with a name that is usual for the role. A role without such a column keeps its default name.
 * Throws DataError if several columns match.
 */
export function findColumns(
  schema: Schema,
  roles: readonly ColumnRole[],
  wanted: WantedColumns,
): FoundColumns {
  const columns: { -readonly [Role in ColumnRole]?: string } = { ...agreedNames(wanted) };
  const has = (name: string | undefined) =>
    name !== undefined && schema.fields.some((field) => field.name === name);
  const recognised: ColumnRole[] = [];
  for (const role of roles) {
    const preferred = wanted.preferred?.[role];
    const usual = [preferred, usualNames[role]].find(has);
    if (usual === undefined || columns[role] !== undefined) continue;
    if (preferred !== undefined && usual !== preferred) recognised.push(role);
    columns[role] = usual;
  }
  for (const role of roles) {
    if (columns[role] !== undefined) continue;
    const taken = Object.values(columns);
    const found = schema.fields
      .map(({ name }) => name)
      .filter((name) => !taken.includes(name) && isNamedLike(name, role));
    if (found.length > 1) throw ambiguous(schema, role, found);
    if (found.length === 1) recognised.push(role);
    columns[role] = found[0] ?? wanted.preferred?.[role] ?? usualNames[role];
  }
  return { columns, recognised };
}

/**
 * Text that names the recognised columns, such as: columns are recognised by their names: user is "userId",
 * item is "movieId"; ... Undefined if none was recognised.
 */
export function noteOfRecognised({ columns, recognised }: FoundColumns): string | undefined {
  if (recognised.length === 0) return undefined;
  const shown = recognised.map((role) => `${role} is "${columns[role]}"`).join(', ');
  return `${recognised.length === 1 ? 'a column is recognised by its name' : 'columns are recognised by their names'}: ${shown}; others are chosen with ${recognised.map((role) => roleOptions[role]).join(', ')}`;
}

function ambiguous(schema: Schema, role: ColumnRole, found: readonly string[]): DataError {
  const names = found.map((name) => `"${name}"`);
  const listed = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  return new DataError(`which column is the ${role}? ${listed} may be; there are: ${columnNames(schema)}`, {
    phase: 'read',
    advice: `Name it with ${roleOptions[role]}`,
  });
}

/**
 * Names of the user and item columns. A split that decides by user or item reads the values of these columns.
 */
export interface PairOptions {
  /**
   * Defaults: the data set's own names, else `user` and `item`, else columns with names such as `userId` and
   * `movie_id`, else the first two columns that can be ids. Must be given if several columns have such names,
   * or if one of the first two columns is named like a time or a rating.
   */
  readonly userCol?: string;
  readonly itemCol?: string;
}

/** Names of both columns. Throws DataError that names the existing columns if one is missing or ambiguous. */
export function pairColumns(schema: Schema, { userCol, itemCol }: PairOptions): readonly [string, string] {
  const [user, item] = chosenColumns(schema, userCol, itemCol);
  for (const column of [user, item]) keyTypeOfColumn(schema, column);
  return [user, item];
}

function chosenColumns(
  schema: Schema,
  userCol: string | undefined,
  itemCol: string | undefined,
): readonly [string, string] {
  for (const given of [userCol, itemCol]) if (given !== undefined) fieldOf(schema, given);
  if (userCol !== undefined && userCol === itemCol)
    throw new UsageError(`userCol and itemCol are both "${userCol}"`);
  if (userCol !== undefined && itemCol !== undefined) return [userCol, itemCol];
  const named = {
    ...(userCol === undefined ? {} : { user: userCol }),
    ...(itemCol === undefined ? {} : { item: itemCol }),
  };
  const { columns } = findColumns(schema, ['user', 'item'], { named });
  const [user, item] = [columns.user, columns.item].map((name) =>
    schema.fields.some((field) => field.name === name) ? name : undefined,
  );
  if (user !== undefined && item !== undefined && user !== item) return [user, item];
  return firstIds(schema, { user: user === item ? userCol : user, item: user === item ? itemCol : item });
}

/**
 * Completes the pair of columns: if at most one is known, takes the first other columns whose values can be
 * ids.
 */
function firstIds(
  schema: Schema,
  { user, item }: { readonly user: string | undefined; readonly item: string | undefined },
): readonly [string, string] {
  const given = user ?? item;
  const needed = given === undefined ? 2 : 1;
  const free = schema.fields
    .filter((field) => field.name !== given && canBeId(field.type, field.name))
    .map((field) => field.name);
  if (free.length < needed)
    throw new DataError(`a split needs two id columns; there are: ${columnNames(schema)}`, {
      advice: 'Name them: { userCol, itemCol }',
    });
  const first = free.slice(0, needed);
  if (
    free.length > needed &&
    first.some((name) => isNamedLike(name, 'timestamp') || isNamedLike(name, 'rating'))
  ) {
    throw new DataError(
      `which columns are user and item? There are: ${columnNames(schema)}; name them: randomSplit(weights, { userCol, itemCol })`,
    );
  }
  return [user ?? first[0], item ?? first[needed - 1]];
}

/**
 * True if a column may be taken as ids without being named. Floats and decimals are ids only if the user
 * names their column.
 */
function canBeId(type: Schema['fields'][number]['type'], name: string): boolean {
  if (DataType.isFloat(type) || DataType.isDecimal(type)) return false;
  try {
    keyTypeOf(type, name);
    return true;
  } catch {
    return false;
  }
}
