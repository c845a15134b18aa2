import { DataType, type Schema } from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { keyTypeOf } from '../../../engine/keys/arrow-keys.ts';
import {
  agreedNames,
  type ColumnNames,
  type ColumnRole,
  isNamedLike,
  roleOptions,
  usualNames,
  type WantedColumns,
} from './column-names.ts';
import { columnNames, fieldOf, keyTypeOfColumn } from './columns.ts';

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
