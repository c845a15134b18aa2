import { readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { crc32 } from 'node:zlib';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import { DataError } from '../../engine/errors.ts';
import { closeReader } from '../../engine/regular-file.ts';
import { fileProblem } from '../files/file-problem.ts';
import { bytesFrom } from '../files/stored-bytes.ts';
import { readExactly } from '../parquet/footer-file.ts';
import { openRandomAccess } from '../parquet/random-access.ts';
import { BODY_SUM, type FileDigests, hexOf } from './decode-metadata.ts';

/** Bytes of a Parquet file after its footer: the footer's length, and the text PAR1. */
const END = 8;

/** Digests of all files in a folder that were just written, in the order of their paths. */
export async function digestsIn(directory: string): Promise<FileDigests> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort();
  const digests: Record<string, string> = {};
  for (const file of files)
    digests[relative(directory, file).replaceAll(sep, '/')] =
      (await ownDigest(file)) ?? (await digestOf(file));
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

/**
 * The digest of a part file, from its footer, which stores the sum of the bytes before it: a second pass over
 * a large model's files takes a second per GB. Undefined for other files.
 */
async function ownDigest(file: string): Promise<string | undefined> {
  if (!file.endsWith('.parquet')) return undefined;
  const handle = await openRandomAccess(file);
  try {
    const { size } = await handle.stat();
    const tail = async (bytes: number) => Buffer.from(await readExactly(handle, file, size - bytes, bytes));
    const footer = await tail(END + (await tail(END)).readUInt32LE(0));
    const notes = parquetMetadata(footer, { geoparquet: false }).key_value_metadata;
    const body = notes?.find(({ key }) => key === BODY_SUM)?.value;
    return body === undefined ? undefined : hexOf(crc32(footer, Number.parseInt(body, 16)));
  } catch (error) {
    throw fileProblem(error, 'save', file);
  } finally {
    await closeReader(handle);
  }
}

async function digestOf(file: string): Promise<string> {
  let sum = 0;
  for await (const bytes of bytesFrom(file, 0, Number.POSITIVE_INFINITY)) sum = crc32(bytes, sum);
  return hexOf(sum);
}
