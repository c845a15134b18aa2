/**
 * NDCG@20 of a model over all users of a test set, without the pairs trained on, and all metrics with
 * baselines and intervals. The model has rank 64 and 4 iterations on the training part.
 *
 *     node bench/quality/ranking.ts FOLDER [--device cpu] [--runs 3] [--model DIR]      FOLDER: written by `factorflow generate --preset movielens20m`
 *
 * "In all" includes reading both sets; "exclusions and test in blocks" is that reading and sorting; "ranks"
 * is only the search.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ALS, Session } from '../../index.ts';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import {
  type RankingMetric,
  rankingMetricNames,
} from '../../operators/evaluation/ranking/ranking-metrics.ts';
import { describeMachine } from '../machine.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: 'string', default: 'cpu' },
    runs: { type: 'string', default: '3' },
    model: { type: 'string' },
  },
});
const [folder] = positionals;
if (folder === undefined) throw new Error('name the folder of the data set');
await using session = await Session.create({
  device: values.device as DeviceRequest,
  ...(values.device === 'cpu' ? { workers: 2 } : {}),
});
console.log(`${describeMachine()}, ${session.device.description}\n`);
const [train, test] = ['train', 'test'].map((part) => session.read.parquet(join(folder, part)));
const model =
  values.model === undefined
    ? await new ALS({ rank: 64, maxIter: 4, regParam: 0.05, seed: 1 }).fit(train)
    : await session.loadModel(values.model);
console.log(
  '| metrics | users | ndcg@20 | s in all | s of the ranks | s of the rest after reading |\n|---|---|---|---|---|---|',
);
const median = (numbers: readonly number[]) =>
  [...numbers].sort((left, right) => left - right)[numbers.length >> 1].toFixed(2);
for (const [name, metrics] of [
  ['ndcg', ['ndcg']],
  ['all', rankingMetricNames],
] as const) {
  const runs: { all: number; ranks: number; rest: number }[] = [];
  let [users, ndcg] = [0, 0];
  for (let run = 0; run < Number(values.runs); run++) {
    let [ranks, began] = [0, 0];
    const start = performance.now();
    const found = await model.evaluateRanking(test, {
      k: 20,
      exclude: train,
      rankUsers: 'all',
      metrics: metrics as readonly RankingMetric[],
      ...(name === 'ndcg' ? { baselines: false, resamples: 0 } : {}),
      onEvent: (event) => {
        if (event.type === 'phase-start' && event.phase === 'rank') began = performance.now();
        if (event.type === 'phase-end' && event.phase === 'rank') ranks = event.seconds;
      },
    });
    const end = performance.now();
    [users, ndcg] = [found.users, found.metrics['ndcg@20']];
    runs.push({ all: (end - start) / 1000, ranks, rest: (end - began) / 1000 - ranks });
  }
  console.log(
    `| ${name} | ${users} | ${ndcg.toFixed(5)} | ${median(runs.map(({ all }) => all))} | ${median(runs.map(({ ranks }) => ranks))} | ${median(runs.map(({ rest }) => rest))} |`,
  );
}
