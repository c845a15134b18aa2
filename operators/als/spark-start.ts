import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { IndexedRatings } from '../ratings/ids/index-ids.ts';
import type { AlsParams } from './als-params.ts';
import type { AlsStart, TrainedSide } from './bind/als-data.ts';
import { startNorm } from './rating-unit.ts';
import { XorShift } from './xor-shift.ts';

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
