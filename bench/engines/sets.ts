/** Real rating sets: folders of FACTORFLOW_DATA, and MovieTweetings of the examples. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Dataset, Session } from '../../index.ts';

const examples = resolve(import.meta.dirname, '../../examples/data');

/** A set's folder, or the folder of this path; undefined, with a line on stderr, if it does not exist. */
export function folderOf(set: string): string | undefined {
  const places = [join(examples, set), join(process.env.FACTORFLOW_DATA ?? '', set), resolve(set)];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) console.error(`left out: ${set}, which is not in FACTORFLOW_DATA`);
  return found;
}

/** The set's own split, or 90 to 10 by the seed. */
export function splitOf(session: Session, folder: string, seed: number): readonly [Dataset, Dataset] {
  const read = (name: string) => session.read.parquet(join(folder, name));
  if (existsSync(join(folder, 'train'))) return [read('train'), read('test')];
  if (existsSync(join(folder, 'train.parquet'))) return [read('train.parquet'), read('test.parquet')];
  const [train, test] = read('ratings.parquet').randomSplit([0.9, 0.1], { seed });
  return [train, test];
}
