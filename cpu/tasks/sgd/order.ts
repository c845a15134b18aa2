import { sharedArray } from '../../../engine/partition.ts';
import { blockWaves } from '../../../engine/plan/grid-order.ts';
import { CounterRandom, randomOrder, mix32, randomU32 } from '../../../engine/random.ts';
import { blockOf, type TaskHandler, type TaskScope } from '../../handler.ts';

export const batchOrder: TaskHandler<'batch-order'> = ({
  params: { seed, stream, epoch, batches, block },
}) => {
  const random = new CounterRandom(seed, stream).derive(epoch);
  const order = sharedArray(Uint32Array, batches);
  order.set(randomOrder(batches, block === undefined ? random : random.derive(block)));
  return {
    rows: batches,
    partitions: { order: { layout: 'batch-order', rows: batches, columns: { order } } },
  };
};

/**
 * Number of the random stream from which wave orders are drawn. Plans for CPU threads use the same stream, so
 * their epochs visit the blocks of a grid in the same order.
 */
const STREAM = 0xb10c;

export const waveOrder: TaskHandler<'wave-order'> = ({ params: { seed, epoch, workers, columnBands } }) => {
  const waves = blockWaves(workers, columnBands, new CounterRandom(seed, STREAM).derive(epoch));
  const order = sharedArray(Uint32Array, waves.length * workers).fill(0xffff_ffff);
  waves.forEach((wave, number) =>
    wave.forEach(({ row, column }) => (order[number * workers + row] = column)),
  );
  return {
    rows: waves.length,
    partitions: { order: { layout: 'wave-order', rows: waves.length, columns: { order } } },
  };
};

/** Groups between two checks for cancellation. */
const CHUNK_GROUPS = 64;

export const dealRatings: TaskHandler<'deal-ratings'> = (scope) => {
  const { from, to, buckets, seed } = scope.params;
  const { offsets, indices, values } = blockOf(scope);
  const list = listOf(scope);
  const groups = Math.floor(values.length / buckets);
  const rest = values.length % buckets;
  const bucketOf = new Uint32Array(buckets);
  let row = rowAt(offsets, from * buckets);
  for (let group = from; group < to && !((group - from) % CHUNK_GROUPS === 0 && scope.cancelled()); group++) {
    const first = group * buckets;
    const count = Math.min(buckets, values.length - first);
    for (let i = 0; i < count; i++) bucketOf[i] = i;
    shuffle(
      count,
      mix32(seed, 3),
      group,
      (i, j) => ([bucketOf[i], bucketOf[j]] = [bucketOf[j], bucketOf[i]]),
    );
    for (let i = 0; i < count; i++) {
      while (offsets[row + 1] <= first + i) row++;
      const bucket = bucketOf[i];
      const place = bucket * groups + Math.min(bucket, rest) + group;
      list.rows[place] = row;
      list.columns[place] = indices[first + i];
      list.values[place] = values[first + i];
    }
  }
  return { rows: Math.min(to * buckets, values.length) - from * buckets };
};

export const shuffleRatings: TaskHandler<'shuffle-ratings'> = (scope) => {
  const { from, to, buckets, seed } = scope.params;
  const { rows, columns, values } = listOf(scope);
  const groups = Math.floor(values.length / buckets);
  const rest = values.length % buckets;
  const startOf = (bucket: number) => bucket * groups + Math.min(bucket, rest);
  for (let bucket = from; bucket < to && !scope.cancelled(); bucket++) {
    const start = startOf(bucket);
    shuffle(startOf(bucket + 1) - start, mix32(seed, 4), bucket, (i, j) => {
      const [a, b] = [start + i, start + j];
      const [row, column, value] = [rows[a], columns[a], values[a]];
      rows[a] = rows[b];
      columns[a] = columns[b];
      values[a] = values[b];
      rows[b] = row;
      columns[b] = column;
      values[b] = value;
    });
  }
  return { rows: startOf(to) - startOf(from) };
};

/**
 * Fisher and Yates's shuffle of 0 .. count - 1. Its random numbers depend only on the 64-bit key (low, high).
 */
function shuffle(count: number, low: number, high: number, swap: (i: number, j: number) => void): void {
  for (let i = count - 1; i > 0; i--) swap(i, Math.floor(randomU32(low, high, i) * 2 ** -32 * (i + 1)));
}

function listOf(scope: TaskScope) {
  return scope.partition('list').columns as { rows: Uint32Array; columns: Uint32Array; values: Float32Array };
}

/** The row of rating k, by bisection. */
function rowAt(offsets: Int32Array, k: number): number {
  let [low, high] = [0, offsets.length - 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle + 1] <= k) low = middle + 1;
    else high = middle;
  }
  return low;
}
