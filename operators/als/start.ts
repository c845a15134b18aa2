import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { keyHashes } from '../../engine/keys/key-hash.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { RowRange } from '../../engine/plan/stages.ts';
import { spread } from '../../engine/random.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import type { IndexedRatings } from '../ratings/ids/number-ids.ts';
import type { AlsParams } from './als-params.ts';
import type { AlsStart, TrainedSide } from './factors.ts';
import { startNorm } from './rating-unit.ts';
import { RowsRun } from './rows/solve-rows.ts';

/**
 * Draws the initial factors of rows, which depend only on the seed and on each row's external id. They equal
 * the rows that a plan's task `initialize` draws. Returns keys x rank numbers in shared memory. `slices`: row
 * ranges, one for each task.
 */
export async function drawRows(
  column: KeyColumn,
  { rank, seed, nonnegative, start }: AlsParams,
  unit: number,
  slices: readonly RowRange[],
  ctx: ExecutionContext,
): Promise<Float32Array> {
  const absolute = nonnegative || start === 'level';
  const rows = keyCount(column);
  const run = new RowsRun('draw-rows', hostDevice(ctx.executor), ctx);
  // The output is a plain array in place of a device's matrix, so its rows have no padding.
  const values = sharedArray(Float32Array, rows * rank);
  const norm = unit === 1 || absolute ? {} : { norm: startNorm(unit) };
  const task = {
    kernel: 'initialize' as const,
    inputs: { keys: run.send('keys', { layout: 'key-hashes', rows, columns: { ...keyHashes(column) } }) },
    outputs: { factors: run.send('factors', { layout: 'values', rows, columns: { values } }) },
    params: { rank, seed, nonnegative: absolute, ...norm },
  };
  run.sliced(task, slices);
  await run.end();
  return values;
}

/** The parameters of Spark's ALS from which it draws its initial factors. */
export interface SparkStart {
  /** An int64. */
  readonly seed: bigint;
  /** numUserBlocks. */
  readonly userBlocks: number;
}

const MULTIPLIER = 0x9e37_75cd_9e37_75cdn;

/**
 * The users' initial factors of Spark's ALS with the same seed and number of blocks: rows of Gaussian numbers
 * divided by their norm, drawn for each block in the order of its ids. Numbers may differ from Spark's in the
 * last bit. Returns undefined for ids that Spark's ALS does not have. `keys`: ascending. `norm`: of each row.
 */
export function sparkRows(
  keys: KeyColumn,
  rank: number,
  { seed, userBlocks }: SparkStart,
  norm: number,
): Float32Array | undefined {
  if (keys.type !== 'int32') return undefined;
  const rows = sharedArray(Float32Array, keyCount(keys) * rank);
  const ofUsers = new XorShift(seed).nextInt64();
  const blocks = new Map<number, XorShift>();
  for (const [row, id] of keys.values.entries()) {
    const block = ((id % userBlocks) + userBlocks) % userBlocks;
    const random = blocks.get(block) ?? generatorOf(ofUsers, block);
    blocks.set(block, random);
    const end = (row + 1) * rank;
    random.gaussians(rows, row * rank, end);
    let squares = 0;
    for (let at = row * rank; at < end; at++) squares += rows[at] * rows[at];
    const scale = Math.fround(norm / Math.fround(Math.sqrt(squares)));
    for (let at = row * rank; at < end; at++) rows[at] *= scale;
  }
  return rows;
}

/** The generator of a block of users: Scala's byteswap64 of the seed and the block's number. */
function generatorOf(seed: bigint, block: number): XorShift {
  const mixed = BigInt.asUintN(64, BigInt.asUintN(64, seed ^ BigInt(block)) * MULTIPLIER);
  let swapped = 0n;
  for (let byte = 0n; byte < 8n; byte++) swapped = (swapped << 8n) | ((mixed >> (8n * byte)) & 0xffn);
  return new XorShift(BigInt.asIntN(64, swapped * MULTIPLIER));
}

type Ids = Pick<IndexedRatings, 'users' | 'items'>;

/** A start from the users' factors; the items' factors and all biases are zeros. */
export function startOfUsers(values: Float32Array, ids: Ids, { rank, biases }: AlsParams): AlsStart {
  const rows = { users: keyCount(ids.users), items: keyCount(ids.items) };
  const side = (of: Float32Array, length: number): TrainedSide => ({
    values: of,
    ...(biases ? { bias: sharedArray(Float32Array, length) } : {}),
  });
  return {
    users: side(values, rows.users),
    items: side(sharedArray(Float32Array, rows.items * rank), rows.items),
  };
}

/**
 * The start of Spark's ALS for ratings divided by `unit`. It stays in host memory during the run. Undefined if
 * it takes more than `room` bytes, or for ids that Spark's ALS does not have: then factors are drawn as usual.
 */
export function startOfSpark(
  start: SparkStart,
  ids: Ids,
  params: AlsParams,
  { unit, room }: { readonly unit: number; readonly room: number },
): AlsStart | undefined {
  const { rank } = params;
  if (4 * rank * (keyCount(ids.users) + keyCount(ids.items)) > room) return undefined;
  const drawn = sparkRows(ids.users, rank, start, startNorm(unit));
  return drawn && startOfUsers(drawn, ids, params);
}

/** The seed of Scala's MurmurHash3 for arrays, the hash of "Array". */
const ARRAY_SEED = 0x3c07_4a61;

/**
 * Spark's random numbers: its XORShiftRandom, a xorshift generator of 64 bits (Marsaglia 2003) with a hashed
 * seed, and on it the Gaussian numbers of java.util.Random. The state is two words of 32 bits.
 */
class XorShift {
  #low: number;
  #high: number;
  #second: number | undefined;
  readonly #words = new Int32Array(4);

  constructor(seed: bigint) {
    const bytes = new DataView(new ArrayBuffer(8));
    bytes.setBigUint64(0, BigInt.asUintN(64, seed));
    this.#low = hashOf(bytes, ARRAY_SEED);
    this.#high = hashOf(bytes, this.#low);
  }

  /** The next signed int64. */
  nextInt64(): bigint {
    const [high, low] = this.#next(2);
    return BigInt.asIntN(64, (BigInt(high) << 32n) + BigInt(low));
  }

  /** Writes the next Gaussian numbers to out[from .. to - 1], by the polar method, which makes two at a time. */
  gaussians(out: Float32Array, from: number, to: number): void {
    let at = from;
    if (this.#second !== undefined && at < to) out[at++] = this.#second;
    if (at > from) this.#second = undefined;
    while (at < to) {
      const words = this.#next(4);
      const x = fractionOf(words[0], words[1]);
      const y = fractionOf(words[2], words[3]);
      const square = x * x + y * y;
      if (square >= 1 || square === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(square)) / square);
      out[at++] = x * scale;
      if (at < to) out[at++] = y * scale;
      else this.#second = y * scale;
    }
  }

  /** The lower halves of the next states: x ^= x << 21; x ^= x >>> 35; x ^= x << 4. Valid until the next call. */
  #next(count: number): Int32Array {
    let [low, high] = [this.#low, this.#high];
    for (let at = 0; at < count; at++) {
      high ^= (high << 21) | (low >>> 11);
      low ^= low << 21;
      low ^= high >>> 3;
      high ^= (high << 4) | (low >>> 28);
      low ^= low << 4;
      this.#words[at] = low;
    }
    [this.#low, this.#high] = [low, high];
    return this.#words;
  }
}

/** A number from -1 up to 1, from 26 and 27 bits of two words. */
function fractionOf(upper: number, lower: number): number {
  return ((upper & 0x3ff_ffff) * 0x800_0000 + (lower & 0x7ff_ffff)) * 2 ** -52 - 1;
}

/** MurmurHash3's 32 bits of eight bytes, read as little-endian words. */
function hashOf(bytes: DataView, seed: number): number {
  let hash = seed;
  for (const at of [0, 4]) {
    const word = Math.imul(bytes.getUint32(at, true), 0xcc9e_2d51);
    hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b87_3593);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe654_6b64) | 0;
  }
  return spread(hash ^ 8);
}
