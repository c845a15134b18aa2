import { UsageError } from '../errors.ts';
import { type Id, idAt, wholeOf } from './find-id.ts';
import { type KeyColumn, keyCount, keyText } from './key-column.ts';

/** The JavaScript type of integer ids; text ids are strings in every form. */
export type IdForm = 'number' | 'bigint' | 'string';

export const idForms = ['number', 'bigint', 'string'] as const satisfies readonly IdForm[];

/** Ids of one side of a model, in the form that callers receive. */
export interface IdValues {
  readonly form: IdForm;
  /** The id at a position. */
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
