import { DataType, type Schema } from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import { isNamedLike } from './column-names.ts';
import { columnNames, fieldOf, keyTypeOfColumn } from './columns.ts';
import { findColumns } from './find-columns.ts';

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
