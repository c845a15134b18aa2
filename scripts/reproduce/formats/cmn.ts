import { join } from 'node:path';
import { DataError } from '../../../index.ts';
import { type Pairs, PairList, type Split } from '../pairs.ts';
import { readNpz, type StoredArray } from './npz.ts';
import { type PickledObject, type PickledValue, readPickle } from './pickle.ts';

/**
 * CMN's citeulike-a.npz: train_data, a table of user and item in uint32, and test_data, a pickled dictionary
 * {user: (item, [100 items to rank it among])}.
 */
export function readCmn(folder: string): Split {
  const file = join(folder, 'citeulike-a.npz');
  const arrays = readNpz(file);
  const [train, test] = ['train_data', 'test_data'].map((name) => {
    const array = arrays.get(name);
    if (array === undefined) throw new DataError(`there is no array ${name}`, { phase: 'read', file });
    return array;
  });
  return { train: trainPairs(train, file), ...testPairs(test, file) };
}

function trainPairs({ type, shape: [rows, columns], fortranOrder, bytes }: StoredArray, file: string): Pairs {
  if (type !== '<u4' || columns < 2)
    throw new DataError(`train_data has type ${type} and ${columns} columns; a table of <u4 is expected`, {
      phase: 'read',
      file,
    });
  const [rowStep, columnStep] = fortranOrder ? [1, rows] : [columns, 1];
  const column = (index: number) =>
    Int32Array.from({ length: rows }, (_, row) =>
      bytes.readUInt32LE(4 * (row * rowStep + index * columnStep)),
    );
  return { users: column(0), items: column(1) };
}

function testPairs({ bytes }: StoredArray, file: string): Required<Omit<Split, 'train'>> {
  const [test, candidates] = [new PairList(), new PairList()];
  const entries = dictionaryOf(readPickle(bytes, file));
  if (entries === undefined)
    throw new DataError('test_data is no dictionary of users', { phase: 'read', file });
  for (const [user, entry] of entries) {
    const [item, listed] = entry as [number, number[]];
    test.add(user as number, item);
    for (const candidate of listed) candidates.add(user as number, candidate);
  }
  return { test: test.toPairs(), candidates: candidates.toPairs() };
}

/** The dictionary in an array of one object: the last member of the array's state is the list of objects. */
function dictionaryOf(array: PickledValue): Map<PickledValue, PickledValue> | undefined {
  const state = (array as PickledObject | null)?.state;
  const objects = Array.isArray(state) ? state.at(-1) : undefined;
  const first = Array.isArray(objects) ? objects[0] : undefined;
  return first instanceof Map ? first : undefined;
}
