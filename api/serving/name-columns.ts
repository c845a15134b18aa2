import type { Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import { columnNames } from '../../operators/ratings/rows/columns.ts';

/** The columns of a file with the names of items. */
export interface NameColumns {
  readonly id: string;
  readonly name: string;
  /** True where the file has no header, so that the columns were taken by position. */
  readonly byPosition: boolean;
}

/** Columns that are given, and the name that the model has for the column of items. */
export interface WantedColumns {
  readonly idCol?: string | undefined;
  readonly nameCol?: string | undefined;
  readonly itemCol?: string | undefined;
}

const THINGS = 'item|movie|film|book|product|track|song|artist|album|game|article|business|place|recipe|beer|anime';
const idNames = [/^item$/i, new RegExp(`^(${THINGS}|imdb|parent)s?[ _-]?id$`, 'i'), /^id$/i, /^(parent_)?asin$|^isbn$|^sku$/i, new RegExp(`^(${THINGS})$`, 'i')];
const nameNames = [/^name$/i, /^title$/i, new RegExp(`^(${THINGS})s?[ _-]?(name|title)$`, 'i'), /(name|title)$/i];

/** Names that a reader of text gives to columns without a header. */
const positional = /^column\d+$|^(user|item|rating|timestamp)$/;

/** Finds the columns of ids and of names. Throws DataError that lists the columns when one is missing. */
export function nameColumns(schema: Schema, { idCol, nameCol, itemCol }: WantedColumns, isText: boolean): NameColumns {
  const columns = schema.fields.map(({ name }) => name);
  for (const [given, option] of [[idCol, 'idCol'], [nameCol, 'nameCol']] as const) {
    if (given !== undefined && !columns.includes(given)) throw missing(schema, `there is no column "${given}"`, spelled(nearest(given, columns), `Give another ${option}`));
  }
  const byPosition = isText && columns.length >= 2 && columns.every((column) => positional.test(column)) && (columns[0] === 'user' || columns[0] === 'column1');
  if (byPosition) return { id: idCol ?? columns[0], name: nameCol ?? columns[1], byPosition: idCol === undefined && nameCol === undefined };
  const id = idCol ?? (itemCol !== undefined && columns.includes(itemCol) ? itemCol : firstLike(columns, idNames, nameCol));
  if (id === undefined) throw missing(schema, 'there is no column of item ids', 'Name it with idCol');
  const name = nameCol ?? firstLike(columns, nameNames, id) ?? (columns.length === 2 ? columns.find((column) => column !== id) : undefined);
  if (name === undefined) throw missing(schema, 'there is no column of item names', 'Name it with nameCol');
  return { id, name, byPosition };
}

function firstLike(columns: readonly string[], patterns: readonly RegExp[], other: string | undefined): string | undefined {
  const free = columns.filter((column) => column !== other);
  return patterns.map((pattern) => free.find((column) => pattern.test(column.trim()))).find((column) => column !== undefined);
}

function missing(schema: Schema, problem: string, advice: string): DataError {
  return new DataError(`${problem}; there are: ${columnNames(schema)}`, { phase: 'read item names', advice });
}
