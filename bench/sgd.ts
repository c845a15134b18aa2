/**
 * SGD on the CPU, by default at MovieLens-20M's shape. Four tables:
 *
 *     updates/s by rank            against libmf's AVX code on a similar machine, 2 threads (not measured here)
 *     updates/s by workers         for each schedule (cuMF_SGD, Figure 9a)
 *     test RMSE by epoch           for each schedule (Figure 9b)
 *     test RMSE by i               R in i x i blocks with the number of workers fixed (Figure 15)
 *
 *     npm run build && node bench/sgd.ts [FOLDER] [--scale 1] [--epochs 10] [--ranks 32,64,128] [--workers 1,2]
 *
 * FOLDER: written by `factorflow generate --preset movielens20m`; generated if missing. Evaluation is not
 * counted. The rate of the ALS normal equations, measured in the same process just before, shows the load of
 * the machine.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compileKernels } from '../cpu/compile-kernels.ts';
import { loadKernels } from '../cpu/kernels.ts';
import { planDevices } from '../engine/run/devices.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { andThen, executePlan } from '../engine/stream/logical-plan.ts';
import { Holdings } from '../engine/run/holdings.ts';
import { type Dataset, Session } from '../index.ts';
import { readRatings } from '../operators/ratings/reading/read-ratings.ts';
import { collectKnownPairs } from '../operators/ratings/ids/known-pairs.ts';
import { SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import { loadSgdData, loadSgdTest } from '../operators/sgd/data/data.ts';
import { checkSgdParams, type SgdParams } from '../operators/sgd/params.ts';
import { planSgd, scheduleOf } from '../operators/sgd/plan.ts';
import type { SgdSchedule } from '../operators/sgd/schedules/schedule.ts';
import { trainSgd } from '../operators/sgd/train.ts';
import { describeMachine } from './machine.ts';

const root = resolve(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scale: { type: 'string', default: '1' },
    epochs: { type: 'string', default: '10' },
    ranks: { type: 'string', default: '32,64,128' },
    workers: {
      type: 'string',
      default: [1, 2, 4, 8, 16, 32].filter((count) => count <= availableParallelism()).join(','),
    },
  },
});
const [epochs, ranks, workerCounts] = [
  Number(values.epochs),
  values.ranks.split(',').map(Number),
  values.workers.split(',').map(Number),
];
const folder = positionals[0] ?? join(root, `build/bench/movielens20m-${values.scale}`);
const libmf: Readonly<Record<number, number>> = { 32: 65, 64: 52, 128: 29.5 };
const schedules = ['hogwild', 'wavefront', 'blocks'] as const;
const most = Math.max(...workerCounts);
const base: Partial<SgdParams> = { regParam: 0.02, learningRate: 0.05, biases: true, maxIter: epochs };

if (!existsSync(folder)) {
  const arguments_ = [
    'generate',
    '--preset',
    'movielens20m',
    '--scale',
    values.scale,
    '--seed',
    '1',
    '--output',
    folder,
  ];
  execFileSync(process.execPath, [join(root, 'dist/programs/cli/main.js'), ...arguments_], {
    stdio: 'inherit',
  });
}
console.log(describeMachine());

console.log(
  `\nM updates/s by rank, ${most} workers, no biases, median epoch of 5 (best)\nrank  M updates/s     libmf, 2 threads   normal equations before`,
);
for (const rank of ranks) {
  const anchor = normalEquationsRate();
  const { median, best } = await run({ rank, maxIter: 5, regParam: 0.02, learningRate: 0.05 }, most);
  console.log(
    `${String(rank).padEnd(5)} ${`${median.toFixed(1)} (${best.toFixed(1)})`.padEnd(15)} ${String(libmf[rank] ?? '-').padEnd(18)} ${anchor.toFixed(1)} GFLOP/s a thread`,
  );
}

console.log(
  `\nM updates/s by workers, rank ${ranks[0]} and biases, median epoch of 5\nworkers  ${schedules.map((name) => name.padEnd(10)).join(' ')}`,
);
for (const workers of workerCounts) {
  const cells: string[] = [];
  for (const schedule of schedules)
    cells.push(
      (await run({ ...base, rank: ranks[0], schedule, maxIter: 5 }, workers)).median.toFixed(1).padEnd(10),
    );
  console.log(`${String(workers).padEnd(8)} ${cells.join(' ')}`);
}

console.log(
  `\ntest RMSE by epoch, rank ${ranks[0]} and biases, ${most} workers\nepoch  ${schedules.map((name) => name.padEnd(10)).join(' ')}`,
);
const curves: number[][] = [];
for (const schedule of schedules)
  curves.push((await run({ ...base, rank: ranks[0], schedule }, most)).errors);
for (let epoch = 0; epoch < epochs; epoch++)
  console.log(
    `${String(epoch + 1).padEnd(6)} ${curves.map((errors) => errors[epoch].toFixed(4).padEnd(10)).join(' ')}`,
  );

console.log(
  `\ntest RMSE after 1, ${Math.ceil(epochs / 2)} and ${epochs} epochs by i, R in i x i blocks, s = ${most} workers\ni      RMSE                     M updates/s`,
);
for (const i of [most, 2 * most, 4 * most, 8 * most, 16 * most]) {
  const { errors, median } = await run({ ...base, rank: ranks[0] }, most, (schedule) => ({
    ...schedule,
    rowBands: i,
    columnBands: i,
  }));
  console.log(
    `${String(i).padEnd(6)} ${[1, Math.ceil(epochs / 2), epochs]
      .map((epoch) => errors[epoch - 1].toFixed(4))
      .join('  ')
      .padEnd(24)} ${median.toFixed(1)}`,
  );
}

/** Trains in its own session; rates in million updates per second, from epochs without their evaluation. */
async function run(
  given: Partial<SgdParams>,
  workers: number,
  change = (schedule: SgdSchedule) => schedule,
): Promise<{ median: number; best: number; errors: number[] }> {
  const params = checkSgdParams(given);
  await using session = await Session.create({ workers, device: 'cpu' });
  const [train, test] = ['train', 'test'].map((part) => session.read.parquet(join(folder, part)));
  const selected = ({ plan }: Dataset) =>
    andThen(plan, new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }));
  return await Holdings.within(session.context(), async (ctx) => {
    const indexed = await readRatings(selected(train), {}, ctx);
    const { users, items, rows } = indexed;
    const data = await loadSgdData(
      indexed,
      { duplicates: 'keep', seed: params.seed, biases: params.biases },
      ctx,
    );
    const known = await collectKnownPairs(await executePlan(selected(test), ctx), users, items, ctx);
    const pairs = await loadSgdTest(known.indexed, data, ctx);
    const [profile, devices] = [
      { users: keyCount(users), items: keyCount(items), ratings: rows, testRatings: pairs.ratings },
      planDevices(ctx.executor),
    ];
    const plan = planSgd(profile, params, devices, {
      schedule: change(scheduleOf(planSgd(profile, params, devices))),
    });
    const { iterations } = await trainSgd(
      { data, test: pairs },
      params,
      { devices: devices.compute, plan: () => plan },
      ctx,
    );
    const rates = iterations.map(({ seconds }) => rows / seconds / 1e6).sort((left, right) => left - right);
    return {
      median: rates[rates.length >> 1],
      best: rates.at(-1) as number,
      errors: iterations.map(({ testRmse = Number.NaN }) => testRmse),
    };
  });
}

/**
 * GFLOP/s of forming A from 256 ratings at rank 64 on this thread, best of several: the machine's current
 * speed.
 */
function normalEquationsRate(): number {
  const [rank, count, size] = [64, 256, 256];
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 65_536, shared: true });
  const kernels = loadKernels(memory, compileKernels());
  const [theta, indices, ratings, matrix, bias, work] = [0, 1, 2, 3, 4, 5].map(
    (part) => 65_536 * (1 + 8 * part),
  );
  new Uint32Array(memory.buffer, indices, count).forEach((_, k, all) => (all[k] = k));
  let best = 0;
  for (let repeat = 0; repeat < 30; repeat++) {
    const start = performance.now();
    for (let k = 0; k < 50; k++)
      kernels.addNormalEquations(theta, size, indices, ratings, count, matrix, bias, 0, work, 0);
    best = Math.max(best, (50 * count * rank * (rank + 1)) / (performance.now() - start) / 1e6);
  }
  return best;
}
