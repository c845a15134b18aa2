import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataError } from '../../index.ts';

/** Pairs of users and items, a column each; ids are whole numbers of at most 31 bits, as in the files. */
export interface Pairs {
  readonly users: Int32Array;
  readonly items: Int32Array;
}

/** The parts of a published split. */
export interface Split {
  readonly train: Pairs;
  readonly test: Pairs;
  /** The items to rank for each user, if the table was not made by ranking all items. */
  readonly candidates?: Pairs;
}

/** Collects pairs one at a time. */
export class PairList {
  readonly #users: number[] = [];
  readonly #items: number[] = [];

  add(user: number, item: number): void {
    this.#users.push(user);
    this.#items.push(item);
  }

  toPairs(): Pairs {
    return { users: Int32Array.from(this.#users), items: Int32Array.from(this.#items) };
  }
}

/** A line's fields and its place, for errors. */
interface Line {
  readonly fields: readonly string[];
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/**
 * Lines of a text file as fields that are separated by spaces or tabs. Lines without a field are left out.
 */
function* linesOf(file: string): Generator<Line> {
  const texts = readFileSync(file, 'utf8').split('\n');
  for (const [index, text] of texts.entries()) {
    const fields = text.split(/\s+/).filter((field) => field !== '');
    if (fields.length > 0) yield { fields, file, line: index + 1 };
  }
}

/** A field as an id: a whole number from 0 to 2^31 - 1. */
function idOf(field: string | undefined, { file, line }: Line, name: string): number {
  const id = field !== undefined && /^\d{1,10}$/.test(field) ? Number(field) : Number.NaN;
  if (id <= 0x7f_ff_ff_ff) return id;
  throw new DataError(`${field === undefined ? 'no field' : `"${field}"`} where the ${name} should be`, {
    phase: 'read',
    file,
    line,
    advice: 'Give the file as its authors publish it',
  });
}

/**
 * The files of NGCF, LightGCN and UltraGCN, train.txt and test.txt: each line a user, then the user's items.
 *
 *     0 148 2800 2079
 *     1 27
 */
export function readUserLists(folder: string): Split {
  return { train: readUserList(join(folder, 'train.txt')), test: readUserList(join(folder, 'test.txt')) };
}

function readUserList(file: string): Pairs {
  const pairs = new PairList();
  for (const line of linesOf(file)) {
    const user = idOf(line.fields[0], line, 'user');
    for (const field of line.fields.slice(1)) pairs.add(user, idOf(field, line, 'item'));
  }
  return pairs.toPairs();
}

/**
 * The files of CVAE with P = 10: line u has the number of items of user u - 1, then these items.
 *
 *     3 6193 14123 21147
 *     0
 */
export function readCountedLists(folder: string): Split {
  return {
    train: readCountedList(join(folder, 'cf-train-10-users.dat')),
    test: readCountedList(join(folder, 'cf-test-10-users.dat')),
  };
}

function readCountedList(file: string): Pairs {
  const pairs = new PairList();
  let user = 0;
  for (const line of linesOf(file)) {
    if (line.line !== user + 1)
      throw new DataError('an empty line, where users are counted by lines', {
        phase: 'read',
        file,
        line: user + 1,
      });
    const count = idOf(line.fields[0], line, 'number of items');
    const items = line.fields.slice(1);
    if (items.length !== count) {
      throw new DataError(`the line says ${count} items and has ${items.length}`, {
        phase: 'read',
        file,
        line: line.line,
      });
    }
    for (const field of items) pairs.add(user, idOf(field, line, 'item'));
    user++;
  }
  return pairs.toPairs();
}

/**
 * The files of NCF: NAME.train.rating and NAME.test.rating (user, item, rating, time), and
 * NAME.test.negative, whose line n has the pair of line n of the test, then the items to rank it among.
 *
 *     0  25  5  978824351
 *     (0,25)  1064  174  2791
 */
export function readNcf(folder: string, name: string): Split {
  const test = join(folder, `${name}.test.rating`);
  return {
    train: readRatings(join(folder, `${name}.train.rating`)),
    test: readRatings(test),
    candidates: readNegatives(join(folder, `${name}.test.negative`)),
  };
}

function readRatings(file: string): Pairs {
  const pairs = new PairList();
  for (const line of linesOf(file))
    pairs.add(idOf(line.fields[0], line, 'user'), idOf(line.fields[1], line, 'item'));
  return pairs.toPairs();
}

function readNegatives(file: string): Pairs {
  const pairs = new PairList();
  for (const line of linesOf(file)) {
    const user = /^\((\d+),\d+\)$/.exec(line.fields[0])?.[1];
    if (user === undefined) {
      throw new DataError(`"${line.fields[0]}" where a pair such as (0,25) should be`, {
        phase: 'read',
        file,
        line: line.line,
      });
    }
    for (const field of line.fields.slice(1)) pairs.add(idOf(user, line, 'user'), idOf(field, line, 'item'));
  }
  return pairs.toPairs();
}
