import { join } from 'node:path';
import { DataError } from '../../../index.ts';
import { type Pairs, PairList, type Split } from '../pairs.ts';
import { idOf, linesOf } from './lines.ts';

/**
 * The files of CVAE with P = 10: line u has the number of items of user u - 1, then these items.
 *
 *     3 6193 14123 21147
 *     0
 */
export function readCountedLists(folder: string): Split {
  return {
    train: readLists(join(folder, 'cf-train-10-users.dat')),
    test: readLists(join(folder, 'cf-test-10-users.dat')),
  };
}

function readLists(file: string): Pairs {
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
