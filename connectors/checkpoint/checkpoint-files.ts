import { createHash } from 'node:crypto';
import { read } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DataError } from '../../engine/errors.ts';
import { withoutControls } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { sharedArray } from '../../engine/partition.ts';
import { closeRead, openRegular, type RegularFile } from '../../engine/regular-file.ts';
import { errorCode, fileProblem } from '../files/file-problem.ts';
import { appendAll, createFile } from '../output/new-file.ts';

/**
 * A checkpoint is a folder of plain files:
 *
 *     checkpoint.json              the state of the run, and the length of each matrix
 *     <matrix>-00000.f32, ...      a matrix, row-major: float32, little-endian, without a header, in parts of 128 MiB
 *     SHA256SUMS                   of all others, as `sha256sum --check` reads it
 */
const STATE = 'checkpoint.json';
const SUMS = 'SHA256SUMS';
const PART_FLOATS = 1 << 25;

const readAt = promisify(read);

/** Bytes are hashed and written in pieces of this size, so that the thread can do other work in between. */
const PIECE_BYTES = 1 << 22;

/** Most bytes of each of the two text files, so that a damaged file cannot exhaust memory. */
const MOST_TEXT_BYTES = 256 << 20;

const FORMAT = 2;

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

/** A matrix to write: one array, or consecutive parts. */
export type WrittenMatrix = Float32Array | readonly Float32Array[];

export function bytesOfMatrices(matrices: Readonly<Record<string, WrittenMatrix>>): number {
  return Object.values(matrices).reduce((sum, matrix) => sum + 4 * lengthOf(matrix), 0);
}

function arraysOf(matrix: WrittenMatrix): readonly Float32Array[] {
  return matrix instanceof Float32Array ? [matrix] : matrix;
}

function lengthOf(matrix: WrittenMatrix): number {
  return arraysOf(matrix).reduce((sum, { length }) => sum + length, 0);
}

/** Bytes of the numbers [from, to), array by array. */
function bytesBetween(matrix: WrittenMatrix, from: number, to: number): Uint8Array[] {
  let first = 0;
  return arraysOf(matrix).flatMap((values) => {
    const [begin, end] = [Math.max(0, from - first), Math.min(values.length, to - first)];
    first += values.length;
    return begin < end
      ? [new Uint8Array(values.buffer, values.byteOffset + 4 * begin, 4 * (end - begin))]
      : [];
  });
}

/** Writes the files of a checkpoint into an empty folder. */
export async function writeCheckpointFiles(
  folder: string,
  iteration: number,
  facts: JsonObject,
  matrices: Readonly<Record<string, WrittenMatrix>>,
): Promise<void> {
  const sums: string[] = [];
  const write = async (name: string, bytes: readonly Uint8Array[]) =>
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

function partsOf(
  name: string,
  length: number,
): { readonly part: string; readonly from: number; readonly to: number }[] {
  return Array.from({ length: Math.max(1, Math.ceil(length / PART_FLOATS)) }, (_, part) => ({
    part: `${name}-${String(part).padStart(5, '0')}.f32`,
    from: part * PART_FLOATS,
    to: Math.min(length, (part + 1) * PART_FLOATS),
  }));
}

async function writeHashed(file: string, arrays: readonly Uint8Array[]): Promise<string> {
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
 * Reads the matrices of a checkpoint into shared memory. Throws DataError that names a part that is missing,
 * damaged, of another length than given, or has NaN or infinite numbers.
 */
export async function readMatrices(
  folder: string,
  { matrices }: StoredState,
  lengths: Readonly<Record<string, number>>,
): Promise<Record<string, Float32Array>> {
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
  const read: Record<string, Float32Array> = {};
  for (const [name, length] of Object.entries(lengths)) {
    const values = sharedArray(Float32Array, length);
    for (const { part, from, to } of partsOf(name, length)) {
      await readChecked(folder, part, sums, new Uint8Array(values.buffer, 4 * from, 4 * (to - from)));
      requireFinite(folder, part, values.subarray(from, to));
    }
    read[name] = values;
  }
  return read;
}

/**
 * Throws DataError for a number that is not finite. A checksum does not find such numbers if they were
 * written so, and a model with them could not be loaded.
 */
function requireFinite(folder: string, name: string, values: Float32Array): void {
  let at = 0;
  while (at < values.length && Number.isFinite(values[at])) at++;
  if (at < values.length) throw fault(folder, name, `the number at position ${at} is ${values[at]}`);
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
  return readInto(folder, name, sums, bytes).then(() => bytes.toString('utf8'));
}

async function readChecked(
  folder: string,
  name: string,
  sums: ReadonlyMap<string, string>,
  bytes: Uint8Array,
): Promise<void> {
  const size = await opened(folder, name, async (found) => found.size);
  if (size !== bytes.length) throw fault(folder, name, `it has ${size} bytes in place of ${bytes.length}`);
  await readInto(folder, name, sums, bytes);
}

/** Fills the bytes from a file, and verifies its checksum. */
async function readInto(
  folder: string,
  name: string,
  sums: ReadonlyMap<string, string> | undefined,
  bytes: Uint8Array,
): Promise<void> {
  const hash = createHash('sha256');
  await opened(folder, name, async ({ fd }) => {
    for (let at = 0; at < bytes.length;) {
      const most = Math.min(PIECE_BYTES, bytes.length - at);
      const { bytesRead } = await readAt(fd, bytes, at, most, at);
      if (bytesRead === 0) throw fault(folder, name, 'it ends early');
      hash.update(bytes.subarray(at, at + bytesRead));
      at += bytesRead;
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
