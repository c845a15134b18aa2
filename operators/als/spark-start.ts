import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
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
