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
