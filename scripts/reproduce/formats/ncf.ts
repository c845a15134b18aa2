import { join } from 'node:path';
import { DataError } from '../../../index.ts';
import { type Pairs, PairList, type Split } from '../pairs.ts';
import { idOf, linesOf } from './lines.ts';

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
