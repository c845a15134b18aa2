import type { Schema } from 'apache-arrow';
import { DataError } from '../engine/errors.ts';
import { keyTypeOf } from '../engine/keys/arrow-keys.ts';
import { columnNames, fieldOf } from './columns.ts';

/** Columns whose values decide a row's part of a split; by default the first two columns that can be ids. */
export interface PairOptions {
  readonly user?: string;
  readonly item?: string;
}

/** The names of both columns; throws DataError naming the columns there are. */
export function pairColumns(schema: Schema, { user, item }: PairOptions): readonly [string, string] {
  if (user !== undefined && item !== undefined) return [fieldOf(schema, user).name, fieldOf(schema, item).name];
  const ids = schema.fields.filter((field) => canBeId(field.type, field.name)).map((field) => field.name);
  if (ids.length < 2) {
    throw new DataError(`a split needs two id columns; there are: ${columnNames(schema)}`, { advice: 'Name them: { user, item }' });
  }
  return [user ?? ids[0], item ?? ids[1]];
}

function canBeId(type: Schema['fields'][number]['type'], name: string): boolean {
  try {
    keyTypeOf(type, name);
    return true;
  } catch {
    return false;
  }
}
