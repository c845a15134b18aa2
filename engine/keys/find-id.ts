import { UsageError } from '../errors.ts';
import { type KeyColumn, keyCount, keyText, type KeyType } from './key-column.ts';

/** An external id as a caller gives it. */
export type Id = string | number | bigint;

export function isId(value: unknown): value is Id {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
}

const encoder = new TextEncoder();

/**
 * Finds the position of an id in ascending keys by binary search, without preparing or keeping anything.
 * Returns -1 if it is not among the keys, or has another type.
 */
export function findId(keys: KeyColumn, id: Id): number {
  if (!isId(id)) return -1;
  if (keys.type === 'utf8') return find(keys, comparedWithText(keys, encoder.encode(String(id))));
  const value = wholeOf(id);
  if (value === undefined) return -1;
  return find(
    keys,
    keys.type === 'int32'
      ? comparedWithNumber(keys.values, Number(value))
      : comparedWithHalves(keys.halves, BigInt(value)),
  );
}

/** True if a column of the type can hold the id. */
export function fitsKeys(type: KeyType, id: Id): boolean {
  if (!isId(id)) return false;
  if (type === 'utf8') return true;
  const value = wholeOf(id);
  const bits = type === 'int32' ? 32 : 64;
  return value !== undefined && BigInt.asIntN(bits, BigInt(value)) === BigInt(value);
}

/** The id at a position: int32 as a number, int64 as a bigint, utf8 as a string. */
export function idAt(keys: KeyColumn, position: number): Id {
  if (keys.type === 'int32') return keys.values[position];
  return keys.type === 'int64' ? BigInt(keyText(keys, position)) : keyText(keys, position);
}

/** The positions of the known ids of a list, and the number of unknown ones. */
export interface FoundIds {
  /** Ascending, each once. */
  readonly positions: Uint32Array;
  readonly unknown: number;
}

export function findIds(keys: KeyColumn, ids: readonly Id[]): FoundIds {
  const positions = new Uint32Array(ids.length);
  let [known, unknown] = [0, 0];
  for (const id of ids) {
    const position = findId(keys, id);
    if (position < 0) unknown++;
    else positions[known++] = position;
  }
  positions.subarray(0, known).sort();
  let distinct = 0;
  for (let k = 0; k < known; k++)
    if (k === 0 || positions[k] !== positions[k - 1]) positions[distinct++] = positions[k];
  return { positions: positions.subarray(0, distinct), unknown };
}

/** `compare`: negative if the key at a position comes before the id. */
function find(keys: KeyColumn, compare: (position: number) => number): number {
  let low = 0;
  let high = keyCount(keys);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(middle) < 0) low = middle + 1;
    else high = middle;
  }
  return low < keyCount(keys) && compare(low) === 0 ? low : -1;
}

function comparedWithNumber(values: Int32Array, id: number) {
  return (position: number) => values[position] - id;
}

function comparedWithHalves(halves: Int32Array, id: bigint) {
  const high = Number(BigInt.asIntN(64, id) >> 32n);
  const low = Number(id & 0xffff_ffffn);
  // An id of more than 64 bits is above or below all keys.
  const beyond = BigInt.asIntN(64, id) === id ? 0 : id > 0n ? -1 : 1;
  return (position: number) =>
    beyond || halves[2 * position + 1] - high || (halves[2 * position] >>> 0) - low;
}

function comparedWithText(
  { offsets, bytes }: { readonly offsets: Int32Array; readonly bytes: Uint8Array },
  id: Uint8Array,
) {
  return (position: number) => {
    const from = offsets[position];
    const length = offsets[position + 1] - from;
    const common = Math.min(length, id.length);
    for (let i = 0; i < common; i++) if (bytes[from + i] !== id[i]) return bytes[from + i] - id[i];
    return length - id.length;
  };
}

/** A whole number; undefined for any other id. */
export function wholeOf(id: Id): number | bigint | undefined {
  if (typeof id === 'bigint') return id;
  if (typeof id === 'number') return Number.isInteger(id) ? id : undefined;
  const text = id.trim();
  return /^[+-]?\d+$/.test(text) ? BigInt(text) : undefined;
}

/**
 * The ids of a list as a column of the given type. Throws UsageError for an id that does not fit the type.
 */
export function keysOfIds(ids: readonly (string | number | bigint)[], type: KeyType): KeyColumn {
  if (type === 'utf8') {
    const texts = ids.map((id) => new TextEncoder().encode(String(id)));
    const offsets = new Int32Array(ids.length + 1);
    texts.forEach((text, i) => (offsets[i + 1] = offsets[i] + text.length));
    const bytes = new Uint8Array(offsets[ids.length]);
    texts.forEach((text, i) => bytes.set(text, offsets[i]));
    return { type, offsets, bytes };
  }
  const bits = type === 'int32' ? 32 : 64;
  const values = ids.map((id) => {
    const whole = fitsKeys(type, id) ? wholeOf(id) : undefined;
    if (whole !== undefined) return BigInt(whole);
    throw new UsageError(`"${String(id).trim()}" is not an id: ids are int${bits} here`);
  });
  if (type === 'int32') return { type, values: Int32Array.from(values, Number) };
  return { type, halves: new Int32Array(BigInt64Array.from(values).buffer) };
}

/** The JavaScript type of integer ids; text ids are strings in every form. */
export type IdForm = 'number' | 'bigint' | 'string';

export const idForms = ['number', 'bigint', 'string'] as const satisfies readonly IdForm[];

/** Ids of one side of a model, in the form that callers receive. */
export interface IdValues {
  readonly form: IdForm;
  readonly at: (position: number) => Id;
  /**
   * The id as it is stored for this side. An integer is given as a number or a bigint, also if callers use
   * another form.
   */
  readonly key: (position: number) => Id;
  /**
   * Converts an unknown id to the form in which it is reported to the caller. With the form `number`, an
   * integer that a number cannot hold exactly becomes text, so that JSON can contain it.
   */
  readonly given: (id: Id) => Id;
}

/**
 * The ids of ascending keys: numbers if all are safe integers, else bigints, unless `wanted` forces a form.
 * Throws UsageError naming the id if numbers are wanted and one cannot be a number.
 */
export function idValues(keys: KeyColumn, wanted: IdForm | undefined, side: 'user' | 'item'): IdValues {
  const unsafe = firstUnsafe(keys);
  if (unsafe !== undefined && wanted === 'number') {
    throw new UsageError(
      `the ${side} id ${unsafe} is beyond the safe integers, so ids: 'number' cannot hold it`,
      { advice: "Choose ids: 'bigint' or ids: 'string' for the session" },
    );
  }
  const form = keys.type === 'utf8' ? 'string' : (wanted ?? (unsafe === undefined ? 'number' : 'bigint'));
  return {
    form,
    at: (position) => idIn(form, keys, position),
    key: (position) => idAt(keys, position),
    given: (id) => inForm(form, id),
  };
}

/**
 * Returns the smallest key if a number cannot hold it exactly, else the largest if a number cannot hold that,
 * else undefined. The keys must be in ascending order.
 */
function firstUnsafe(keys: KeyColumn): string | undefined {
  const count = keyCount(keys);
  if (keys.type !== 'int64' || count === 0) return undefined;
  return [keyText(keys, 0), keyText(keys, count - 1)].find((text) => !Number.isSafeInteger(Number(text)));
}

function idIn(form: IdForm, keys: KeyColumn, position: number): Id {
  if (form === 'string') return keyText(keys, position);
  if (form === 'bigint') return BigInt(idAt(keys, position));
  return Number(idAt(keys, position));
}

function inForm(form: IdForm, id: Id): Id {
  const value = form === 'string' ? undefined : wholeOf(id);
  if (value === undefined) return form === 'string' ? String(id) : id;
  if (form === 'bigint') return BigInt(value);
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}
