import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { crc32 } from 'node:zlib';
import { DataError } from '../../engine/errors.ts';
import { bytesFrom } from '../files/stored-bytes.ts';
import { type FileDigests, hexOf } from './decode-metadata.ts';

/** Digests of all files in a folder, in the order of their paths. */
export async function digestsIn(directory: string): Promise<FileDigests> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const digests: Record<string, string> = {};
  for (const file of files) digests[relative(directory, file).replaceAll(sep, '/')] = await digestOf(file);
  return digests;
}

/** Throws DataError for a file of a model that is damaged, or that was saved with another model. */
export async function requireDigests(directory: string, digests: FileDigests): Promise<void> {
  for (const [name, stored] of Object.entries(digests)) {
    const file = join(directory, name);
    const found = await digestOf(file);
    if (found !== stored)
      throw new DataError(
        `the file is damaged or belongs to another model: its checksum is ${found}, and the metadata say ${stored}`,
        { phase: 'load', file, advice: 'Copy the whole model again' },
      );
  }
}

async function digestOf(file: string): Promise<string> {
  let sum = 0;
  for await (const bytes of bytesFrom(file, 0, Number.POSITIVE_INFINITY)) sum = crc32(bytes, sum);
  return hexOf(sum);
}
