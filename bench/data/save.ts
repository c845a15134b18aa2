/**
 * Seconds to save a model of random factors until it is on disk, and to convert ratings into Parquet and CSV,
 * by number of workers.
 *
 *     node bench/data/save.ts [users = 480189] [items = 17770] [rank = 100] [ratings = a Parquet folder to convert, default none] [workers = 1,2,4,8,16]
 *
 * In the first save of a session the threads load the encoder; it is printed separately from the median of
 * five further saves.
 */
import { makeVector } from 'apache-arrow';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Session } from '../../api/session.ts';
import { saveModel, type StoredModel } from '../../connectors/model/model-store.ts';
import { CounterRandom } from '../../engine/random.ts';
import { describeMachine } from '../machine.ts';

const [users = 480_189, items = 17_770, rank = 100] = process.argv.slice(2, 5).map(Number);
const ratings = process.argv[5] === '-' ? undefined : process.argv[5];
const counts = (process.argv[6] ?? '1,2,4,8,16')
  .split(',')
  .map(Number)
  .filter((count) => count <= availableParallelism());

function factorsOf(rows: number, stream: number): Float32Array {
  const random = new CounterRandom(stream);
  const factors = new Float32Array(new SharedArrayBuffer(4 * rows * rank));
  for (let i = 0; i < factors.length; i++) factors[i] = random.uniform(i) - 0.5;
  return factors;
}

const idsOf = (rows: number) => makeVector(Int32Array.from({ length: rows }, (_, row) => row));
const model: StoredModel = {
  rank,
  userIds: idsOf(users),
  userFactors: factorsOf(users, 1),
  itemIds: idsOf(items),
  itemFactors: factorsOf(items, 2),
  columns: { user: 'user', item: 'item', rating: 'rating', prediction: 'prediction' },
  coldStartStrategy: 'nan',
  factorflow: {},
};

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

console.log(describeMachine());
console.log(
  `model of ${users} users, ${items} items, rank ${rank}: ${((4 * rank * (users + items)) / 1e6).toFixed(0)} MB`,
);
const folder = await mkdtemp(join(tmpdir(), 'factorflow-save-'));
try {
  for (const workers of counts) {
    await using session = await Session.create({ device: 'cpu', workers });
    const { executor } = session.context();
    const save = () => saveModel(join(folder, 'model'), model, { overwrite: true, executor });
    const first = await seconds(save);
    const others: number[] = [];
    for (let run = 0; run < 5; run++) others.push(await seconds(save));
    const line = [
      `${workers} workers: save ${first.toFixed(3)} s at first, then ${others.sort((a, b) => a - b)[2].toFixed(3)}`,
    ];
    if (ratings !== undefined) {
      const source = session.read.parquet(ratings);
      const rows = await source.count();
      for (const [name, write] of [
        ['Parquet', () => source.write.parquet(join(folder, 'rows.parquet'), { overwrite: true })],
        ['CSV', () => source.write.csv(join(folder, 'rows.csv'), { overwrite: true })],
      ] as const) {
        line.push(`to ${name} ${(rows / 1e6 / (await seconds(write))).toFixed(1)} M rows/s`);
      }
    }
    console.log(line.join('; '));
  }
} finally {
  await rm(folder, { recursive: true });
}
