import { createHash } from 'node:crypto';
import { read, readSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DataError } from '../../engine/errors.ts';
import { withoutControls } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { sharedArray } from '../../engine/partition.ts';
import { closeRead, openRegular, type RegularFile } from '../../engine/regular-file.ts';
import type { StoredNumbers } from '../../engine/row-parts.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { appendAll, createFile } from '../output/new-file.ts';

const readAt = promisify(read);

/** Most bytes of each of the two text files, so that a damaged file cannot exhaust memory. */
const MOST_TEXT_BYTES = 256 << 20;

/**
 * Reads the state of a checkpoint. Throws DataError that names the file that is missing, damaged or not of a
 * checkpoint.
 */
export async function readState(folder: string): Promise<StoredState> {
  const text = await readText(folder, STATE, await sumsOf(folder));
  let state: Partial<StoredState> | null;
  try {
    state = JSON.parse(text) as Partial<StoredState> | null;
  } catch {
    throw fault(folder, STATE, 'it is not JSON');
  }
  if (state?.format !== FORMAT)
    throw fault(
      folder,
      STATE,
      `its format is ${withoutControls(JSON.stringify(state?.format ?? null)).slice(0, 40)}, and this release reads ${FORMAT}`,
    );
  const isRecord =
    typeof state.matrices === 'object' &&
    state.matrices !== null &&
    Object.values(state.matrices).every((length) => Number.isSafeInteger(length) && length >= 0);
  if (!Number.isSafeInteger(state.iteration) || !isRecord)
    throw fault(folder, STATE, 'it has no iteration and lengths of matrices');
  return state as StoredState;
}

/**
 * Checks the matrices of a checkpoint. Those that fit into `keptBytes` together, in the order of `lengths`, are
 * kept in shared memory until they are first read as a whole; the others are read from their files at each
 * use. Throws DataError that names a part that is missing, damaged, of another length than given, or has NaN
 * or infinite numbers.
 */
export async function checkedMatrices(
  folder: string,
  { matrices }: StoredState,
  lengths: Readonly<Record<string, number>>,
  keptBytes: number,
): Promise<Record<string, StoredNumbers>> {
  const sums = await sumsOf(folder);
  const other = [...new Set([...Object.keys(lengths), ...Object.keys(matrices)])].find(
    (name) => lengths[name] !== matrices[name],
  );
  if (other !== undefined)
    throw fault(
      folder,
      STATE,
      `the matrix ${other.replaceAll(/[^\w-]/g, '').slice(0, 60)} has ${matrices[other] ?? 'no'} numbers, and ${lengths[other] ?? 'none'} belong there`,
    );
  let left = keptBytes;
  const piece = Buffer.alloc(PIECE_BYTES);
  const checked: Record<string, StoredNumbers> = {};
  for (const [name, length] of Object.entries(lengths)) {
    const kept = 4 * length <= left ? sharedArray(Float32Array, length) : undefined;
    if (kept !== undefined) left -= kept.byteLength;
    for (const part of partsOf(name, length)) await checkPart(folder, part, sums, piece, kept);
    const fromFiles = readerOf(folder, name, length);
    checked[name] = { length, read: kept === undefined ? fromFiles : keptReader(kept, fromFiles) };
  }
  return checked;
}

/** Checks one part of a matrix, and copies it to its place in `kept`. */
async function checkPart(
  folder: string,
  { part, from, to }: ReturnType<typeof partsOf>[number],
  sums: ReadonlyMap<string, string>,
  piece: Uint8Array,
  kept: Float32Array | undefined,
): Promise<void> {
  await requireSize(folder, part, 4 * (to - from));
  await readPieces(folder, part, sums, 4 * (to - from), piece, (bytes, at) => {
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    requireFinite(folder, part, values, at / 4);
    kept?.set(values, from + at / 4);
  });
}

/**
 * A reader that returns the kept numbers when they are first read as a whole, and then releases them. Other
 * reads use the files.
 */
function keptReader(numbers: Float32Array, fromFiles: StoredNumbers['read']): StoredNumbers['read'] {
  let kept: Float32Array | undefined = numbers;
  return (from, to) => {
    if (kept === undefined || from > 0 || to < kept.length) return fromFiles(from, to);
    const whole = kept;
    kept = undefined;
    return whole;
  };
}

/** Reads numbers of a matrix whose files were checked. */
function readerOf(folder: string, name: string, length: number): StoredNumbers['read'] {
  return (from, to) => {
    const values = sharedArray(Float32Array, to - from);
    for (const part of partsOf(name, length)) {
      const [first, end] = [Math.max(from, part.from), Math.min(to, part.to)];
      if (first < end)
        readNumbers(folder, part.part, values.subarray(first - from, end - from), first - part.from);
    }
    return values;
  };
}

/** Fills `values` with the numbers of a file from position `first` on. */
function readNumbers(folder: string, name: string, values: Float32Array, first: number): void {
  const file = join(folder, name);
  const bytes = bytesOf(values);
  const { fd } = openOwn(folder, name, file);
  try {
    for (let done = 0; done < bytes.length;) {
      const found = readSync(fd, bytes, done, bytes.length - done, 4 * first + done);
      if (found === 0) throw fault(folder, name, 'it ends early');
      done += found;
    }
  } catch (error) {
    throw fileProblem(error, 'resume', file);
  } finally {
    closeRead(fd);
  }
}

/**
 * Throws DataError for a number that is not finite; `first`: position of the first of the numbers. A checksum
 * does not find such numbers if they were written so, and a model with them could not be loaded.
 */
function requireFinite(folder: string, name: string, values: Float32Array, first: number): void {
  let at = 0;
  while (at < values.length && Number.isFinite(values[at])) at++;
  if (at < values.length) throw fault(folder, name, `the number at position ${first + at} is ${values[at]}`);
}

async function sumsOf(folder: string): Promise<ReadonlyMap<string, string>> {
  const lines = (await readText(folder, SUMS)).split('\n').slice(0, -1);
  const sums = new Map(
    lines.map((line) => {
      const [, sum, name] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
      // Only names of checkpoint files are accepted, never paths, so that no file outside the folder is read.
      if (name === undefined || !isCheckpointEntry(name))
        throw fault(folder, SUMS, "a line is not the checksum of a checkpoint's file");
      return [name, sum] as const;
    }),
  );
  if (!sums.has(STATE)) throw fault(folder, SUMS, `it does not name ${STATE}`);
  return sums;
}

async function readText(folder: string, name: string, sums?: ReadonlyMap<string, string>): Promise<string> {
  const bytes = await opened(folder, name, async ({ size }) => {
    if (size > MOST_TEXT_BYTES) throw fault(folder, name, `it has ${size} bytes`);
    return Buffer.alloc(size);
  });
  await readPieces(folder, name, sums, bytes.length, Buffer.alloc(PIECE_BYTES), (piece, at) =>
    bytes.set(piece, at),
  );
  return bytes.toString('utf8');
}

async function requireSize(folder: string, name: string, bytes: number): Promise<void> {
  const size = await opened(folder, name, async (found) => found.size);
  if (size !== bytes) throw fault(folder, name, `it has ${size} bytes in place of ${bytes}`);
}

/**
 * Reads the first `size` bytes of a file through the memory `piece`, which is full except at the end, and
 * verifies the checksum. `use` gets each piece and its position.
 */
async function readPieces(
  folder: string,
  name: string,
  sums: ReadonlyMap<string, string> | undefined,
  size: number,
  piece: Uint8Array,
  use: (bytes: Uint8Array, at: number) => void,
): Promise<void> {
  const hash = createHash('sha256');
  await opened(folder, name, async ({ fd }) => {
    for (let at = 0; at < size;) {
      const bytes = piece.subarray(0, Math.min(piece.length, size - at));
      for (let done = 0; done < bytes.length;) {
        const { bytesRead } = await readAt(fd, bytes, done, bytes.length - done, at + done);
        if (bytesRead === 0) throw fault(folder, name, 'it ends early');
        done += bytesRead;
      }
      hash.update(bytes);
      use(bytes, at);
      at += bytes.length;
    }
  });
  if (sums !== undefined && sums.get(name) !== hash.digest('hex'))
    throw fault(folder, name, 'its checksum is not the one in SHA256SUMS');
}

/** Opens a regular file of the folder. Links are refused, since they could lead out of it. */
async function opened<Result>(
  folder: string,
  name: string,
  use: (found: RegularFile) => Promise<Result>,
): Promise<Result> {
  const file = join(folder, name);
  const found = openOwn(folder, name, file);
  try {
    return await use(found);
  } catch (error) {
    throw fileProblem(error, 'resume', file);
  } finally {
    closeRead(found.fd);
  }
}

function openOwn(folder: string, name: string, file: string): RegularFile {
  try {
    return openRegular(file, { phase: 'resume', links: false });
  } catch (error) {
    if (error instanceof DataError) throw fault(folder, name, error.summary);
    throw errorCode(error) === 'ELOOP'
      ? fault(folder, name, 'it is a link')
      : fileProblem(error, 'resume', file);
  }
}

function fault(folder: string, name: string, summary: string): DataError {
  return new DataError(`the checkpoint is damaged or foreign: ${summary}`, {
    phase: 'resume',
    file: join(folder, name),
  });
}

/**
 * A checkpoint is a folder of plain files:
 *
 *     checkpoint.json              the state of the run, and the length of each matrix
 *     <matrix>-00000.f32, ...      a matrix, row-major: float32, little-endian, without a header, in parts of 128 MiB
 *     SHA256SUMS                   of all others, as `sha256sum --check` reads it
 */
export const STATE = 'checkpoint.json';
export const SUMS = 'SHA256SUMS';
const PART_FLOATS = 1 << 25;

/** Bytes are hashed and written in pieces of this size, so that the thread can do other work in between. */
export const PIECE_BYTES = 1 << 22;

export const FORMAT = 2;

export interface StoredState extends JsonObject {
  readonly format: number;
  readonly iteration: number;
  /** Length of each matrix. */
  readonly matrices: Readonly<Record<string, number>>;
}

/** True for the relative path of a file that belongs to a checkpoint. */
export function isCheckpointEntry(path: string): boolean {
  return path === STATE || path === SUMS || /^[a-z-]{1,60}-\d{5}\.f32$/.test(path);
}

/** The part files of a matrix, and the positions of their numbers. */
export function partsOf(
  name: string,
  length: number,
): { readonly part: string; readonly from: number; readonly to: number }[] {
  return Array.from({ length: Math.max(1, Math.ceil(length / PART_FLOATS)) }, (_, part) => ({
    part: `${name}-${String(part).padStart(5, '0')}.f32`,
    from: part * PART_FLOATS,
    to: Math.min(length, (part + 1) * PART_FLOATS),
  }));
}

export function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** A matrix to write: one array, consecutive parts, or numbers in other files. */
export type WrittenMatrix = Float32Array | readonly Float32Array[] | StoredNumbers;

export function bytesOfMatrices(matrices: Readonly<Record<string, WrittenMatrix>>): number {
  return Object.values(matrices).reduce((sum, matrix) => sum + 4 * lengthOf(matrix), 0);
}

function lengthOf(matrix: WrittenMatrix): number {
  if ('read' in matrix || matrix instanceof Float32Array) return matrix.length;
  return matrix.reduce((sum, { length }) => sum + length, 0);
}

/** Bytes of the numbers [from, to), array by array. Numbers in other files are read piece by piece. */
function* bytesBetween(matrix: WrittenMatrix, from: number, to: number): Generator<Uint8Array> {
  if ('read' in matrix) {
    const step = PIECE_BYTES / 4;
    for (let at = from; at < to; at += step) yield bytesOf(matrix.read(at, Math.min(to, at + step)));
    return;
  }
  let first = 0;
  for (const values of matrix instanceof Float32Array ? [matrix] : matrix) {
    const [begin, end] = [Math.max(0, from - first), Math.min(values.length, to - first)];
    first += values.length;
    if (begin < end) yield bytesOf(values.subarray(begin, end));
  }
}

/** Writes the files of a checkpoint into an empty folder. */
export async function writeCheckpointFiles(
  folder: string,
  iteration: number,
  facts: JsonObject,
  matrices: Readonly<Record<string, WrittenMatrix>>,
): Promise<void> {
  const sums: string[] = [];
  const write = async (name: string, bytes: Iterable<Uint8Array>) =>
    void sums.push(`${await writeHashed(join(folder, name), bytes)}  ${name}\n`);
  const lengths = Object.fromEntries(
    Object.entries(matrices).map(([name, matrix]) => [name, lengthOf(matrix)]),
  );
  for (const [name, matrix] of Object.entries(matrices)) {
    for (const { part, from, to } of partsOf(name, lengths[name]))
      await write(part, bytesBetween(matrix, from, to));
  }
  const state: StoredState = { ...facts, format: FORMAT, iteration, matrices: lengths };
  await write(STATE, [Buffer.from(`${JSON.stringify(state)}\n`)]);
  await writeHashed(join(folder, SUMS), [Buffer.from(sums.join(''))]);
}

async function writeHashed(file: string, arrays: Iterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256');
  const handle = await createFile(file);
  try {
    for (const bytes of arrays) {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
        const piece = bytes.subarray(at, at + PIECE_BYTES);
        hash.update(piece);
        await appendAll(handle, [piece]);
      }
    }
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}
