import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { collectList, DataError, type Dataset, type Session } from '../../index.ts';
import { type Part, publishedFiles } from './formats.ts';
import type { AttributeFile, PublishedSet } from './sets.ts';

/** The Parquet files that the commands read. */
export interface SplitFiles {
  readonly train: string;
  readonly test: string;
  readonly candidates?: string;
}

/**
 * The set's split in a folder: in Parquet (train.parquet, test.parquet and, where the set has them,
 * candidates.parquet), or as its authors publish it, which is converted into `workFolder`. The folder may
 * also be one of several sets.
 */
export async function findSplit(
  session: Session,
  set: PublishedSet,
  { data, workFolder }: { readonly data: string; readonly workFolder: string },
): Promise<SplitFiles> {
  const parts: readonly Part[] = ['train', 'test', ...(set.candidates ? (['candidates'] as const) : [])];
  const files = publishedFiles(set);
  const [parquet, names] = [parts.map((part) => `${part}.parquet`), files.map(({ name }) => name)];
  const holding = (wanted: readonly string[]) =>
    [data, join(data, set.folder)].find((folder) => wanted.every((name) => existsSync(join(folder, name))));
  const filesIn = (folder: string) =>
    Object.fromEntries(parts.map((part, i) => [part, join(folder, parquet[i])])) as unknown as SplitFiles;
  const [converted, published] = [holding(parquet), holding(names)];
  if (converted !== undefined) return filesIn(converted);
  if (published === undefined) {
    throw new DataError(`the files of ${set.name} are not there`, {
      phase: 'read',
      file: data,
      advice: `Give a folder with ${names.join(', ')}, or with ${parquet.join(', ')}`,
    });
  }
  console.log(`converting ${names.join(', ')} of ${published} into ${workFolder}`);
  await mkdir(workFolder, { recursive: true });
  const found = filesIn(workFolder);
  for (const { part, name, read } of files) {
    const rows = session.fromRows(() => read(join(published, name)));
    await rows.write.parquet(found[part]!, { overwrite: true });
  }
  return found;
}

/** Converts the set's words of items into a file with a row for each item: `item`, and the list `words`. */
export async function convertAttributes(
  session: Session,
  { file, word }: AttributeFile,
  { data, workFolder }: { readonly data: string; readonly workFolder: string },
): Promise<string> {
  const rows = session.read.parquet(join(data, file));
  const converted = join(workFolder, 'attributes.parquet');
  await mkdir(workFolder, { recursive: true });
  await session
    .fromRows(() => repeated(rows, word))
    .groupBy('item')
    .agg(collectList('word').as('words'))
    .write.parquet(converted, { overwrite: true });
  return converted;
}

/** Rows of an item and a word, each as often as it is counted. */
async function* repeated(rows: Dataset, word: string) {
  for await (const batch of rows)
    for (const { item, [word]: value, count = 1 } of batch)
      for (let n = 0; n < count; n++) yield { item: Number(item), word: Number(value) };
}

/** Counts of a split. Those after `items` are 0 in a clean one. */
interface SplitCounts {
  readonly train: number;
  readonly test: number;
  readonly candidates: number;
  readonly users: number;
  readonly items: number;
  /** Test pairs that are in train too. */
  readonly leaked: number;
  /** Pairs that repeat another of the same part. */
  readonly repeatedTrain: number;
  readonly repeatedTest: number;
  readonly repeatedCandidates: number;
  /** Users with test pairs and without a train pair. */
  readonly untrainedUsers: number;
  /** Test pairs whose item has no train pair. */
  readonly untrainedItems: number;
  /** Candidates that are test pairs, and candidates that are train pairs. */
  readonly positiveCandidates: number;
  readonly seenCandidates: number;
}

/** Compares the parts of a split with each other: rows of the columns user and item. */
export async function countSplit(train: Dataset, test: Dataset, candidates?: Dataset): Promise<SplitCounts> {
  const count = async (rows: Dataset | undefined) => (await rows?.count()) ?? 0;
  const distinct = (column: string) =>
    count(train.select(column).union(test.select(column)).dropDuplicates(column));
  const within = (rows: Dataset | undefined, others: Dataset) =>
    count(rows?.join(others, ['user', 'item'], 'semi'));
  const repeats = async (rows: Dataset | undefined) =>
    (await count(rows)) - (await count(rows?.dropDuplicates('user', 'item')));
  return {
    train: await count(train),
    test: await count(test),
    candidates: await count(candidates),
    users: await distinct('user'),
    items: await distinct('item'),
    leaked: await within(test, train),
    repeatedTrain: await repeats(train),
    repeatedTest: await repeats(test),
    repeatedCandidates: await repeats(candidates),
    untrainedUsers: await count(test.join(train, 'user', 'anti').dropDuplicates('user')),
    untrainedItems: await count(test.join(train, 'item', 'anti')),
    positiveCandidates: await within(candidates, test),
    seenCandidates: await within(candidates, train),
  };
}

/** The sizes of a split, and a line for each count that is not 0. */
export function describeCounts(counts: SplitCounts, keepSeen: boolean): string[] {
  const { train, test, candidates, users, items } = counts;
  const listed = candidates === 0 ? '' : `, ${candidates} candidates`;
  const seen = keepSeen ? 'ranked' : 'left out';
  const noted: readonly (readonly [number, string])[] = [
    [counts.repeatedTrain, 'train pairs repeat another'],
    [counts.repeatedTest, 'test pairs repeat another; each counts once'],
    [counts.leaked, 'test pairs are in train'],
    [counts.untrainedUsers, 'test users have no train pair; they count as misses'],
    [counts.untrainedItems, 'test pairs are of items without a train pair; they count as misses'],
    [counts.repeatedCandidates, 'candidates repeat another; each is ranked once'],
    [counts.positiveCandidates, 'candidates are test pairs; they are ranked once, as positives'],
    [counts.seenCandidates, `candidates are train pairs; they are ${seen}`],
  ];
  return [
    `${users} users, ${items} items, ${train} train pairs, ${test} test pairs${listed}`,
    ...noted.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`),
  ];
}
