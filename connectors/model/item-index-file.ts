import { read } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';
import { DataError } from '../../engine/errors.ts';
import { closeRead, openRegular } from '../../engine/regular-file.ts';
import { errorCode, fileProblem, messageOf } from '../files/file-problem.ts';
import { syncPath } from '../output/new-file.ts';
import {
  codeBytes,
  decodeHeader,
  gramSize,
  headerSize,
  INDEX_ADVICE,
  INDEX_FOLDER,
  INDEX_MAGIC,
  INDEX_PREFIX,
  type IndexHeader,
  type IndexKind,
  type IndexSection,
  otherItems,
} from './index-layout.ts';

export const indexKinds: readonly IndexKind[] = ['recommend', 'similar'];

const PIECE = 1 << 26;

export interface StoredIndex {
  readonly header: IndexHeader;
  readonly centers: Float32Array;
  readonly starts: Uint32Array;
  readonly guide: Uint32Array;
  readonly codes: Uint8Array;
  /** Of implicit data, in the index for recommendations: see gramOfItems. */
  readonly gram?: Float32Array;
}

export interface IndexHead {
  readonly file: string;
  readonly header: IndexHeader;
  readonly bytes: number;
}

/** The path of the file of a kind in a model folder. */
export function indexFile(directory: string, kind: IndexKind): string {
  return join(directory, INDEX_FOLDER, `${kind}.lists`);
}

/** True for the relative path of a file that belongs to a model's index. */
export function isIndexEntry(path: string): boolean {
  return /^itemIndex\/?((recommend|similar)\.lists(\.\d+\.tmp)?)?$/.test(path);
}

/** Writes the file of an index into a model folder; it appears whole or not at all. */
export async function writeIndex(directory: string, index: StoredIndex): Promise<string> {
  const file = indexFile(directory, index.header.kind);
  const temporary = `${file}.${process.pid}.tmp`;
  const sections = sectionsOf(index);
  const sums = Object.fromEntries(sections.map(([name, bytes]) => [name, checksum(bytes)]));
  const json = JSON.stringify({ ...index.header, sums });
  const header = Buffer.from(json.padEnd(64 * Math.ceil((INDEX_PREFIX + json.length) / 64) - INDEX_PREFIX));
  const prefix = Buffer.alloc(INDEX_PREFIX);
  prefix.write(INDEX_MAGIC, 'latin1');
  prefix.writeUInt32LE(header.length, 8);
  prefix.writeUInt32LE(crc32(header), 12);
  try {
    await mkdir(join(directory, INDEX_FOLDER), { recursive: true });
    const handle = await open(temporary, 'w');
    try {
      await handle.writeFile(prefix);
      await handle.writeFile(header);
      for (const [, bytes] of sections)
        for (let at = 0; at < bytes.length; at += PIECE)
          // A copy: files are not written from shared memory.
          await handle.writeFile(new Uint8Array(bytes.subarray(at, at + PIECE)));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
    await syncPath(join(directory, INDEX_FOLDER));
    return file;
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileProblem(error, 'save', file);
  }
}

/** Removes the files of kinds from a model folder. */
export async function removeIndex(directory: string, kinds: readonly IndexKind[]): Promise<void> {
  for (const kind of kinds) await rm(indexFile(directory, kind), { force: true });
}

/**
 * The headers of a model's indexes. Throws DataError for a file that is cut, damaged or of another program,
 * or that is an index of other items.
 */
export async function readIndexHeads(
  directory: string,
  { items, features }: { readonly items: number; readonly features: number },
): Promise<readonly IndexHead[]> {
  const heads: IndexHead[] = [];
  for (const kind of indexKinds) {
    const file = indexFile(directory, kind);
    const found = await withFile(file, (fd, size) => readHead(file, fd, size));
    if (found === undefined) continue;
    const { header } = found;
    const other = otherItems(header, kind, items, features);
    if (other !== undefined) throw foreign(file, other);
    heads.push({ file, header, bytes: found.size });
  }
  return heads;
}

/**
 * Reads an index. `factors` returns the CRC-32 of the model's item factors. Throws DataError like
 * readIndexHeads, and for an index of another model.
 */
export async function readIndex(file: string, factors: () => Promise<number>): Promise<StoredIndex> {
  const found = await withFile(file, async (fd, size) => {
    const head = await readHead(file, fd, size);
    const { lists, columns, rank } = head.header;
    const index: StoredIndex = {
      header: head.header,
      centers: new Float32Array(new SharedArrayBuffer(4 * (lists + 3) * rank)),
      starts: new Uint32Array(new SharedArrayBuffer(4 * (lists + 1))),
      guide: new Uint32Array(new SharedArrayBuffer(16 * columns)),
      codes: new Uint8Array(new SharedArrayBuffer(columns * codeBytes(rank))),
      ...(head.header.gram && { gram: new Float32Array(new SharedArrayBuffer(4 * gramSize(rank))) }),
    };
    let from = head.at.centers;
    for (const [name, bytes] of sectionsOf(index)) {
      const sum = await readBytes(fd, bytes, from, file);
      if (sum !== head.sums[name]) throw damaged(file, `the checksum of its ${name} is wrong`);
      from += bytes.length;
    }
    checkParts(file, index);
    return index;
  });
  if (found === undefined) throw new DataError('the index was removed', { phase: 'load', file });
  if (found.header.factors !== (await factors()))
    throw foreign(file, 'its checksum of the item factors is another');
  return found;
}

const readSome = promisify(read);

/** Fills an array, which may be in shared memory, from a file. Returns the CRC-32 of its bytes. */
async function readBytes(fd: number, bytes: Uint8Array, from: number, file: string): Promise<number> {
  let [at, sum] = [0, 0];
  while (at < bytes.length) {
    const piece = bytes.subarray(at, at + PIECE);
    const { bytesRead } = await readSome(fd, piece, 0, piece.length, from + at);
    if (bytesRead === 0) throw damaged(file, 'it was cut while it was read');
    sum = crc32(piece.subarray(0, bytesRead), sum);
    at += bytesRead;
  }
  return sum;
}

/** CRC-32 of bytes in memory, in pieces between which other work can run. */
export async function factorsChecksum(values: Float32Array): Promise<number> {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += PIECE) {
    sum = crc32(bytes.subarray(at, at + PIECE), sum);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sum;
}

function sectionsOf(index: StoredIndex): readonly (readonly [IndexSection, Uint8Array])[] {
  return (['centers', 'starts', 'guide', 'codes', 'gram'] as const).flatMap((name) => {
    const values = index[name];
    if (values === undefined) return [];
    return [[name, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)] as const];
  });
}

function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += PIECE) sum = crc32(bytes.subarray(at, at + PIECE), sum);
  return sum;
}

/** Runs `use` with an open file; undefined if there is no file. */
async function withFile<T>(
  file: string,
  use: (fd: number, size: number) => Promise<T>,
): Promise<T | undefined> {
  try {
    const { fd, size } = openRegular(file, { phase: 'load' });
    try {
      return await use(fd, size);
    } finally {
      closeRead(fd);
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error instanceof DataError ? error : fileProblem(error, 'load', file);
  }
}

async function readHead(file: string, fd: number, size: number) {
  const prefix = Buffer.alloc(Math.min(INDEX_PREFIX, size));
  await readBytes(fd, prefix, 0, file);
  const { bytes, sum } = orDamaged(file, () => headerSize(prefix, size));
  const header = Buffer.alloc(bytes);
  if ((await readBytes(fd, header, INDEX_PREFIX, file)) !== sum)
    throw damaged(file, 'the checksum of its header is wrong');
  return { ...orDamaged(file, () => decodeHeader(header.toString('latin1'), size)), size };
}

function orDamaged<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw damaged(file, messageOf(error));
  }
}

/** Searches read the memory that these numbers name. */
function checkParts(file: string, { header, starts, guide }: StoredIndex): void {
  const { lists, columns, vectors } = header;
  let wrong = starts[0] !== 0 || starts[lists] !== columns;
  for (let list = 0; list < lists; list++)
    wrong ||= starts[list] > starts[list + 1] || starts[list] % 4 !== 0;
  let items = 0;
  for (let at = 3 * columns; at < 4 * columns; at++) {
    if (guide[at] < vectors) items++;
    else wrong ||= guide[at] !== 0xffff_ffff;
  }
  if (wrong || items !== vectors) throw damaged(file, 'its lists are not those of its items');
}

function damaged(file: string, problem: string): DataError {
  return new DataError(`the index cannot be used: ${problem}`, { phase: 'load', file, advice: INDEX_ADVICE });
}

function foreign(file: string, problem: string): DataError {
  return new DataError(`the index is of another model: ${problem}`, {
    phase: 'load',
    file,
    advice: INDEX_ADVICE,
  });
}
