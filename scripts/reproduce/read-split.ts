import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, Session } from '../../index.ts';
import type { Pairs, Split } from './formats.ts';
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

/** Columns user and item of a Parquet file, of whole numbers. */
async function readParquetPairs(session: Session, file: string): Promise<Pairs> {
  const [users, items] = [[] as Int32Array[], [] as Int32Array[]];
  for await (const batch of session.read.parquet(file)) {
    users.push(idsOf(batch.getChild('user'), 'user', file));
    items.push(idsOf(batch.getChild('item'), 'item', file));
  }
  return { users: joined(users), items: joined(items) };
}

function idsOf(column: Iterable<unknown> | null, name: string, file: string): Int32Array {
  if (column === null)
    throw new DataError(`there is no column ${name}`, { phase: 'read', file, column: name });
  return Int32Array.from(column, (value) => {
    const id = typeof value === 'bigint' ? Number(value) : value;
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= 0x7f_ff_ff_ff) return id;
    throw new DataError(`${String(value)} is no id: ids are whole numbers from 0`, {
      phase: 'read',
      file,
      column: name,
    });
  });
}

function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((filled, part) => (all.set(part, filled), filled + part.length), 0);
  return all;
}

/** Writes pairs as Parquet with the columns user and item. */
async function writeParquetPairs(session: Session, { users, items }: Pairs, file: string): Promise<void> {
  const rows = function* () {
    for (let k = 0; k < users.length; k++) yield { user: users[k], item: items[k] };
  };
  await session.fromRows(rows).write.parquet(file, { overwrite: true });
}
