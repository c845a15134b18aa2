/**
 * NDCG@20 over all users on a GPU: ranks of the test items among all items that a user has not seen. Factors
 * are random and pairs evenly distributed, in the sizes of a data set; the time of a search does not depend
 * on them, except for counting the few scores above a positive's.
 *
 *     node bench/gpu/ranking.ts [--users 480189] [--items 17770] [--ratings 99072112] [--test 1408395] [--rank 64] [--calls 5]
 *
 * All data are in host memory. The first call sends exclusions and test pairs to the device, where they stay;
 * each call sends its factors.
 */
import { parseArgs } from 'node:util';
import { computeDevice } from '../../engine/run/devices.ts';
import { dataSetName, sharedArray } from '../../engine/partition.ts';
import { gaussianPair } from '../../cpu/reference/draw.ts';
import { CounterRandom } from '../../engine/random.ts';
import { Session } from '../../index.ts';
import { PositiveRanks } from '../../operators/evaluation/ranking/rank-positives.ts';
import { rankedTest, userValues } from '../../operators/evaluation/ranking/ranked-test.ts';
import { depthOf, measuresOf } from '../../operators/evaluation/ranking/ranking-metrics.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../operators/ratings/rating-block.ts';
import { describeMachine } from '../machine.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '480189' },
    items: { type: 'string', default: '17770' },
    ratings: { type: 'string', default: '99072112' },
    test: { type: 'string', default: '1408395' },
    rank: { type: 'string', default: '64' },
    calls: { type: 'string', default: '5' },
    device: { type: 'string', default: 'gpu' },
  },
});
const [users, items, ratings, tests, rank, calls] = [
  values.users,
  values.items,
  values.ratings,
  values.test,
  values.rank,
  values.calls,
].map(Number);
console.log(describeMachine());
await using session = await Session.create({ device: values.device as 'gpu' });
const exclude = evenBlock(ratings / users, 1);
const { positives } = rankedTest(evenBlock(tests / users, 2), exclude);
const ids = (count: number) =>
  ({ type: 'int32', values: Int32Array.from({ length: count }, (_, i) => i) }) as const;
const model = {
  rank,
  users: ids(users),
  items: ids(items),
  userFactors: gaussian(users, 3),
  itemFactors: gaussian(items, 4),
};
const ctx = session.context();
const ranks = new PositiveRanks(positives, exclude, ctx);
const device = computeDevice(ctx.executor);
console.log(
  `${device.info.description}: ${users} users, ${items} items, ${exclude.ratings} pairs seen, ${positives.ratings} positives, rank ${rank}\n`,
);
console.log('| call | ms | of it places | kernels on the GPU, ms |\n|---|---|---|---|');
const times = (run: boolean) =>
  device.run({ kernel: 'kernel-times', inputs: {}, outputs: {}, params: { run } });
const measures = measuresOf(['ndcg'], [20]);
for (let call = 1; call <= calls; call++) {
  const timed = call === calls && device.info.kind === 'gpu';
  if (timed) await times(true);
  const start = performance.now();
  const places = await ranks.places(model, depthOf(['ndcg'], [20]));
  const ranked = performance.now();
  const { means } = userValues({ positives, places, items, excluded: undefined }, measures);
  const end = performance.now();
  const kernels = timed
    ? Object.entries((await times(false)).values).map(
        ([kernel, ms]) => `${kernel} ${(ms as number).toFixed(1)}`,
      )
    : ['-'];
  console.log(
    `| ${call} | ${(end - start).toFixed(0)} | ${(ranked - start).toFixed(0)} | ${kernels.join(', ')} |${call === 1 ? ` ndcg@20 ${means[0].toFixed(6)}` : ''}`,
  );
}

/** About `mean` items per user, evenly spaced from a random one. */
function evenBlock(mean: number, seed: number): RatingBlock {
  const random = new CounterRandom(seed);
  const lengths = Int32Array.from({ length: users }, (_, user) =>
    Math.min(items, Math.round(mean * 2 * random.uniform(2 * user))),
  );
  const partition = emptyBlock(lengths);
  const { offsets, indices } = partition.columns as { offsets: Int32Array; indices: Uint32Array };
  for (let user = 0; user < users; user++) {
    const step = items / Math.max(1, lengths[user]);
    const first = random.uniform(2 * user + 1) * step;
    for (let k = 0; k < lengths[user]; k++)
      indices[offsets[user] + k] = Math.min(items - 1, Math.floor(first + k * step));
  }
  return blockOf({ name: dataSetName('pairs'), partition: 0, version: 0 }, partition);
}

function gaussian(rows: number, seed: number): Float32Array {
  const all = sharedArray(Float32Array, rows * rank);
  const random = new CounterRandom(seed);
  for (let at = 0; at + 1 < all.length; at += 2) gaussianPair(random.u32(at), random.u32(at + 1), all, at);
  return all;
}
