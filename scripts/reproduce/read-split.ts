import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, type Session } from '../../index.ts';
import { readParquetPairs, writeParquetPairs } from './formats/parquet-pairs.ts';
import type { Pairs, Split } from './pairs.ts';
import type { PublishedSet } from './sets.ts';

/** The Parquet files that the commands read. */
export interface SplitFiles {
  readonly train: string;
  readonly test: string;
  readonly candidates?: string;
}

export interface FoundSplit {
  readonly split: Split;
  readonly files: SplitFiles;
}

/**
 * The set's split in a folder: in Parquet (train.parquet, test.parquet and, where the set has them,
 * candidates.parquet), or as its authors publish it, which is converted into `workFolder`. The folder may
 * also be one of several sets.
 */
export async function readSplit(
  session: Session,
  set: PublishedSet,
  { data, workFolder }: { readonly data: string; readonly workFolder: string },
): Promise<FoundSplit> {
  const parquet = ['train', 'test', ...(set.candidates ? ['candidates'] : [])];
  const names = parquet.map((part) => `${part}.parquet`);
  const folders = [data, join(data, set.folder)];
  const holding = (files: readonly string[]) =>
    folders.find((folder) => files.every((name) => existsSync(join(folder, name))));
  const [converted, published] = [holding(names), holding(set.files.names)];
  if (converted !== undefined) {
    const files = filesIn(converted, set);
    return { split: await readParts(session, files), files };
  }
  if (published === undefined) {
    throw new DataError(`the files of ${set.name} are not there`, {
      phase: 'read',
      file: data,
      advice: `Give a folder with ${set.files.names.join(', ')}, or with ${names.join(', ')}`,
    });
  }
  const split = set.files.read(published);
  console.log(`converting ${set.files.names.join(', ')} of ${published} into ${workFolder}`);
  await mkdir(workFolder, { recursive: true });
  const files = filesIn(workFolder, set);
  for (const [part, file] of Object.entries(files))
    await writeParquetPairs(session, split[part as keyof Split] as Pairs, file);
  return { split, files };
}

function filesIn(folder: string, { candidates }: PublishedSet): SplitFiles {
  const file = (part: string) => join(folder, `${part}.parquet`);
  return {
    train: file('train'),
    test: file('test'),
    ...(candidates && { candidates: file('candidates') }),
  };
}

async function readParts(session: Session, { train, test, candidates }: SplitFiles): Promise<Split> {
  return {
    train: await readParquetPairs(session, train),
    test: await readParquetPairs(session, test),
    ...(candidates !== undefined && { candidates: await readParquetPairs(session, candidates) }),
  };
}
