import { DataType, type Schema } from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import { columnNames, fieldOf, keyTypeOfColumn } from './columns.ts';

/** Columns whose values decide a row's part of a split. */
export interface PairOptions {
  /**
   * Defaults: `user` and `item` where the data has both, else the first two columns that can be ids. They must be given where more
   * than two columns can be ids and one of the first two has a name of a time or a rating.
   */
  readonly userCol?: string;
  readonly itemCol?: string;
}

const OTHER_MEANING = /^(timestamp|time|date|ts|rating|score)$/i;

/** The names of both columns; throws DataError naming the columns that exist when one is missing or ambiguous. */
export function pairColumns(schema: Schema, { userCol, itemCol }: PairOptions): readonly [string, string] {
  const [user, item] = chosenColumns(schema, userCol, itemCol);
  for (const column of [user, item]) keyTypeOfColumn(schema, column);
  return [user, item];
}

function chosenColumns(schema: Schema, userCol: string | undefined, itemCol: string | undefined): readonly [string, string] {
  for (const given of [userCol, itemCol]) if (given !== undefined) fieldOf(schema, given);
  if (userCol !== undefined && userCol === itemCol) throw new UsageError(`userCol and itemCol are both "${userCol}"`);
  if (userCol !== undefined && itemCol !== undefined) return [userCol, itemCol];
  const has = (name: string) => schema.fields.some((field) => field.name === name);
  const [user, item] = [userCol ?? 'user', itemCol ?? 'item'];
  if (has(user) && has(item) && user !== item) return [user, item];
  const given = userCol ?? itemCol;
  const needed = given === undefined ? 2 : 1;
  const free = schema.fields.filter((field) => field.name !== given && canBeId(field.type, field.name)).map((field) => field.name);
  if (free.length < needed) throw new DataError(`a split needs two id columns; there are: ${columnNames(schema)}`, { advice: 'Name them: { userCol, itemCol }' });
  const first = free.slice(0, needed);
  if (free.length > needed && first.some((name) => OTHER_MEANING.test(name))) {
    throw new DataError(`which columns are user and item? There are: ${columnNames(schema)}; name them: randomSplit(weights, { userCol, itemCol })`);
  }
  return [userCol ?? first[0], itemCol ?? first[needed - 1]];
}

/** False for floats and decimals too: they are ids only where they are named. */
function canBeId(type: Schema['fields'][number]['type'], name: string): boolean {
  if (DataType.isFloat(type) || DataType.isDecimal(type)) return false;
  try {
    keyTypeOf(type, name);
    return true;
  } catch {
    return false;
  }
}
