import type { Schema } from 'apache-arrow';
import { DataError } from '../../../engine/errors.ts';
import {
  agreedNames,
  type ColumnNames,
  type ColumnRole,
  isNamedLike,
  roleOptions,
  usualNames,
  type WantedColumns,
} from './column-names.ts';
import { columnNames } from './columns.ts';

export interface FoundColumns {
  readonly columns: ColumnNames;
  /**
   * The roles whose columns were recognised by a name that is neither said nor preferred, nor the usual one
   * where nothing is preferred.
   */
  readonly recognised: readonly ColumnRole[];
}

/**
 * The names of the columns of some roles: those that are said, else the preferred or the usual one where the
 * data have it, else the only one with a name that the role often has. A role without such a column keeps its
 * usual name. Throws DataError where several could be meant.
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
 * "columns are recognised by their names: user is "userId", item is "movieId"; ..."; undefined where none
 * was.
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
