import { join } from 'node:path';
import { type Pairs, PairList, type Split } from '../pairs.ts';
import { idOf, linesOf } from './lines.ts';

/**
 * The files of NGCF, LightGCN and UltraGCN, train.txt and test.txt: each line a user, then the user's items.
 *
 *     0 148 2800 2079
 *     1 27
 */
export function readUserLists(folder: string): Split {
  return { train: readLists(join(folder, 'train.txt')), test: readLists(join(folder, 'test.txt')) };
}

function readLists(file: string): Pairs {
  const pairs = new PairList();
  for (const line of linesOf(file)) {
    const user = idOf(line.fields[0], line, 'user');
    for (const field of line.fields.slice(1)) pairs.add(user, idOf(field, line, 'item'));
  }
  return pairs.toPairs();
}
