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
export interface GivenColumns {
  readonly idCol?: string | undefined;
  readonly nameCol?: string | undefined;
  readonly itemCol?: string | undefined;
}

const THINGS =
  'item|movie|film|book|product|track|song|artist|album|game|article|business|place|recipe|beer|anime';
/** Usual names of columns of ids and of names, the likeliest first. */
const idNames = [
  /^item$/i,
  new RegExp(`^(${THINGS}|imdb|parent)s?[ _-]?id$`, 'i'),
  /^id$/i,
  /^(parent_)?asin$|^isbn$|^sku$/i,
  new RegExp(`^(${THINGS})$`, 'i'),
];
const titleNames = [
  /^name$/i,
  /^title$/i,
  new RegExp(`^(${THINGS})s?[ _-]?(name|title)$`, 'i'),
  /(name|title)$/i,
];

/** Names that a reader of text gives to columns without a header. */
const positional = /^column\d+$|^(user|item|rating|timestamp)$/;

/** Finds the columns of ids and of names. Throws DataError that lists the columns when one is missing. */
export function nameColumns(schema: Schema, given: GivenColumns, isText: boolean): NameColumns {
  const { idCol, nameCol, itemCol } = given;
  const columns = schema.fields.map(({ name }) => name);
  requireColumn(schema, idCol, 'idCol');
  requireColumn(schema, nameCol, 'nameCol');
  if (isText && hasNoHeader(columns)) {
    const byPosition = idCol === undefined && nameCol === undefined;
    return { id: idCol ?? columns[0], name: nameCol ?? columns[1], byPosition };
  }
  const ofModel = itemCol !== undefined && columns.includes(itemCol) ? itemCol : undefined;
  const id = idCol ?? ofModel ?? firstLike(columns, idNames, nameCol);
  if (id === undefined) throw missing(schema, 'there is no column of item ids', 'Name it with idCol');
  const onlyOther = columns.length === 2 ? columns.find((column) => column !== id) : undefined;
  const name = nameCol ?? firstLike(columns, titleNames, id) ?? onlyOther;
  if (name === undefined) throw missing(schema, 'there is no column of item names', 'Name it with nameCol');
  return { id, name, byPosition: false };
}

function hasNoHeader(columns: readonly string[]): boolean {
  const [first] = columns;
  const isFirst = first === 'user' || first === 'column1';
  return columns.length >= 2 && isFirst && columns.every((column) => positional.test(column));
}

function firstLike(columns: readonly string[], patterns: readonly RegExp[], other: string | undefined) {
  const free = columns.filter((column) => column !== other);
  const found = patterns.map((pattern) => free.find((column) => pattern.test(column.trim())));
  return found.find((column) => column !== undefined);
}

function requireColumn(schema: Schema, given: string | undefined, option: 'idCol' | 'nameCol'): void {
  const columns = schema.fields.map(({ name }) => name);
  if (given === undefined || columns.includes(given)) return;
  const advice = spelled(nearest(given, columns), `Give another ${option}`);
  throw missing(schema, `there is no column "${given}"`, advice);
}

function missing(schema: Schema, problem: string, advice: string): DataError {
  return new DataError(`${problem}; there are: ${columnNames(schema)}`, { phase: 'read item names', advice });
}
