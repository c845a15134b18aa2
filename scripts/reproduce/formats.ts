/** Readers of splits as their authors publish them. Ids are whole numbers of at most 31 bits. */
import { readFileSync } from 'node:fs';
import { DataError } from '../../index.ts';
import type { PublishedSet } from './sets.ts';

export interface Pair {
  readonly user: number;
  readonly item: number;
}

export type Part = 'train' | 'test' | 'candidates';

/** A published file; candidates are the items to rank for each user, in place of all items. */
interface PublishedFile {
  readonly part: Part;
  readonly name: string;
  readonly read: (file: string) => Generator<Pair>;
}

/** The files of a set as their authors publish them. */
export function publishedFiles({ format, prefix }: PublishedSet): readonly PublishedFile[] {
  if (format === 'user-lists')
    return [
      { part: 'train', name: 'train.txt', read: userList },
      { part: 'test', name: 'test.txt', read: userList },
    ];
  if (format === 'counted-lists')
    return [
      { part: 'train', name: 'cf-train-10-users.dat', read: countedList },
      { part: 'test', name: 'cf-test-10-users.dat', read: countedList },
    ];
  return [
    { part: 'train', name: `${prefix}.train.rating`, read: ratings },
    { part: 'test', name: `${prefix}.test.rating`, read: ratings },
    { part: 'candidates', name: `${prefix}.test.negative`, read: negatives },
  ];
}

/** A line's fields and its place, from 1. */
interface Line {
  readonly fields: readonly string[];
  readonly file: string;
  readonly line: number;
}

/** Lines as fields that are separated by spaces or tabs. Lines without a field are left out. */
function* linesOf(file: string): Generator<Line> {
  for (const [index, text] of readFileSync(file, 'utf8').split('\n').entries()) {
    const fields = text.split(/\s+/).filter((field) => field !== '');
    if (fields.length > 0) yield { fields, file, line: index + 1 };
  }
}

function wrong(text: string, { file, line }: Omit<Line, 'fields'>): DataError {
  return new DataError(text, {
    phase: 'read',
    file,
    line,
    advice: 'Give the file as its authors publish it',
  });
}

/** A field as an id: a whole number from 0 to 2^31 - 1. */
function idOf(field: string | undefined, line: Line, name: string): number {
  const id = field !== undefined && /^\d{1,10}$/.test(field) ? Number(field) : Number.NaN;
  if (id <= 0x7f_ff_ff_ff) return id;
  throw wrong(`${field === undefined ? 'no field' : `"${field}"`} where the ${name} should be`, line);
}

function* pairsOf(user: number, line: Line): Generator<Pair> {
  for (const field of line.fields.slice(1)) yield { user, item: idOf(field, line, 'item') };
}

/**
 * The files of NGCF, LightGCN and UltraGCN: each line a user, then the user's items.
 *
 *     0 148 2800 2079
 *     1 27
 */
export function* userList(file: string): Generator<Pair> {
  for (const line of linesOf(file)) yield* pairsOf(idOf(line.fields[0], line, 'user'), line);
}

/**
 * The files of CVAE with P = 10: line u has the number of items of user u - 1, then these items.
 *
 *     3 6193 14123 21147
 *     0
 */
export function* countedList(file: string): Generator<Pair> {
  let user = 0;
  for (const line of linesOf(file)) {
    if (line.line !== user + 1)
      throw wrong('an empty line, where users are counted by lines', { file, line: user + 1 });
    const count = idOf(line.fields[0], line, 'number of items');
    const found = line.fields.length - 1;
    if (found !== count) throw wrong(`the line says ${count} items and has ${found}`, line);
    yield* pairsOf(user++, line);
  }
}

/**
 * The rating files of NCF: user, item, rating, time.
 *
 *     0  25  5  978824351
 */
export function* ratings(file: string): Generator<Pair> {
  for (const line of linesOf(file))
    yield { user: idOf(line.fields[0], line, 'user'), item: idOf(line.fields[1], line, 'item') };
}

/**
 * NCF's candidates: line n has the pair of line n of the test, then the items to rank it among.
 *
 *     (0,25)  1064  174  2791
 */
export function* negatives(file: string): Generator<Pair> {
  for (const line of linesOf(file)) {
    const user = /^\((\d+),\d+\)$/.exec(line.fields[0])?.[1];
    if (user === undefined) throw wrong(`"${line.fields[0]}" where a pair such as (0,25) should be`, line);
    yield* pairsOf(idOf(user, line, 'user'), line);
  }
}
