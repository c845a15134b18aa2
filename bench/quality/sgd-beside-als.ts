/**
 * Test RMSE of SGD and of ALS with default parameters at several ranks; prints the table of
 * docs/measured/quality.md.
 *
 *     npm run build && node bench/quality/sgd-beside-als.ts [--ranks 10,32,64] [--seeds 5] [--sets filmtrust,..] [--device cpu] [DIR..]
 *
 * Sets and splits are the same as in quality.ts; a DIR is written by `factorflow generate`, with train/ and
 * test/.
 */
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ALS, type Dataset, Session, SGD, type TrainingReport } from '../../index.ts';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import { describeMachine } from '../machine.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ranks: { type: 'string', default: '10,32,64' },
    seeds: { type: 'string', default: '5' },
    sets: {
      type: 'string',
      default: 'filmtrust,ml-latest-small,movietweetings-100k,douban-monti,bookcrossing,epinions-770k',
    },
    device: { type: 'string', default: 'cpu' },
  },
});
const ranks = values.ranks.split(',').map(Number);
const seeds = Number(values.seeds);
const data = process.env.FACTORFLOW_DATA ?? '';
const examples = resolve(import.meta.dirname, '../../examples/data');

interface Errors {
  /** RMSE after the last iteration, divided by the RMSE of damped means, by seed. */
  readonly last: number[];
  readonly train: number[];
  readonly seconds: number[];
}

const session = await Session.create({ device: values.device as DeviceRequest });
const rows: string[] = [];
try {
  const folders = values.sets
    .split(',')
    .filter((set) => set !== '')
    .map((set) => (set === 'movietweetings-100k' ? join(examples, set) : join(data, set)));
  for (const folder of [...folders, ...positionals]) {
    if (existsSync(folder)) for (const rank of ranks) rows.push(await rowOf(folder, rank));
    else console.error(`left out: ${folder}, which does not exist`);
  }
} finally {
  await session.close();
}
console.log(
  `${describeMachine()}; ${session.device.kind}\n\n\`node bench/quality/sgd-beside-als.ts ${process.argv.slice(2).join(' ')}\`\n`,
);
console.log('| set | rank | ALS | SGD | SGD / ALS | worst seed | train RMSE: ALS, SGD | seconds: ALS, SGD |');
console.log(`|---|---|---|---|---|---|---|---|\n${rows.join('\n')}`);

async function rowOf(folder: string, rank: number): Promise<string> {
  const errors: Readonly<Record<'als' | 'sgd', Errors>> = {
    als: { last: [], train: [], seconds: [] },
    sgd: { last: [], train: [], seconds: [] },
  };
  for (let seed = 0; seed < seeds; seed++) {
    const [train, validation] = splitOf(folder, seed);
    for (const trainer of [new ALS({ rank, seed }), new SGD({ rank, seed })]) {
      const { training } = await trainer.fit(train, { validation });
      if (training !== undefined) add(errors[training.algorithm], training);
    }
  }
  const { als, sgd } = errors;
  const ratios = sgd.last.map((error, seed) => error / als.last[seed]);
  console.error(`${basename(folder)}, rank ${rank}: ${ratios.map((ratio) => ratio.toFixed(4)).join(', ')}`);
  const cells = [
    basename(folder),
    rank,
    mean(als.last).toFixed(3),
    mean(sgd.last).toFixed(3),
    mean(ratios).toFixed(4),
    Math.max(...ratios).toFixed(4),
  ];
  const pair = (of: 'train' | 'seconds', digits: number) =>
    `${mean(als[of]).toFixed(digits)}, ${mean(sgd[of]).toFixed(digits)}`;
  return `| ${[...cells, pair('train', 3), pair('seconds', 1)].join(' | ')} |`;
}

function add(
  { last, train, seconds }: Errors,
  { iterations, baselines, seconds: { train: trained } }: TrainingReport,
): void {
  const { testRmse, trainRmse } = iterations.at(-1) ?? {};
  if (testRmse === undefined || trainRmse === undefined || baselines === undefined)
    throw new Error('no pairs to test with');
  last.push(testRmse / baselines.dampedMeans.rmse);
  train.push(trainRmse);
  seconds.push(trained);
}

function splitOf(folder: string, seed: number): readonly [Dataset, Dataset] {
  const read = (name: string) => session.read.parquet(join(folder, name));
  if (existsSync(join(folder, 'train'))) return [read('train'), read('test')];
  if (existsSync(join(folder, 'train.parquet'))) return [read('train.parquet'), read('test.parquet')];
  const [train, test] = read('ratings.parquet').randomSplit([0.9, 0.1], { seed });
  return [train, test];
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
