/**
 * Test RMSE with default parameters compared with means, on explicit ratings; prints the table of
 * docs/measured/quality.md.
 *
 *     npm run build && node bench/quality/quality.ts [--seeds 5] [--sets filmtrust,...] [--svd PYTHON]
 *
 * Sets: folders of Parquet files in FACTORFLOW_DATA, and movietweetings-100k of examples/. Each seed splits a
 * set 90 to 10 and draws the initial factors; douban-monti has its own split, and its seeds only draw the
 * initial factors. In all columns, pairs of users or items without training ratings are left out. SVD-10 is
 * scikit-surprise's SVD with 10 factors and otherwise its defaults, run by a Python that has scikit-surprise,
 * pandas and pyarrow.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ALS, type Dataset, Session, SGD } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const { values } = parseArgs({
  options: { seeds: { type: 'string', default: '5' }, sets: { type: 'string' }, svd: { type: 'string' } },
});
const root = resolve(import.meta.dirname, '../..');
const data = process.env.FACTORFLOW_DATA ?? '';
const names = values.sets?.split(',') ?? [
  'filmtrust',
  'ml-latest-small',
  'movietweetings-100k',
  'douban-monti',
  'bookcrossing',
  'epinions-770k',
];
const seeds = Number(values.seeds);

const trainers = {
  ALS: (seed: number) => new ALS({ seed }),
  'ALS, no biases': (seed: number) => new ALS({ seed, biases: false }),
  SGD: (seed: number) => new SGD({ seed }),
  'ALS before (`ALS.spark()`)': (seed: number) => ALS.spark({ seed }),
  'SGD before (no biases)': (seed: number) => new SGD({ seed, biases: false }),
} as const;
type Column = 'mean' | 'damped means' | keyof typeof trainers | 'SVD-10';
const columns: readonly Column[] = [
  'mean',
  'damped means',
  ...(Object.keys(trainers) as (keyof typeof trainers)[]),
  'SVD-10',
];

const session = await Session.create({ device: 'cpu' });
const scratch = mkdtempSync(join(tmpdir(), 'factorflow-quality-'));
const rows: {
  readonly set: string;
  readonly errors: Readonly<Record<Column, readonly number[]>>;
  readonly third: readonly number[];
  readonly thirdUnbiased: readonly number[];
}[] = [];
try {
  for (const set of names) {
    const folder = set === 'movietweetings-100k' ? join(root, 'examples/data', set) : join(data, set);
    if (!existsSync(folder)) {
      console.error(`left out: ${set}, which is not in FACTORFLOW_DATA`);
      continue;
    }
    rows.push(await rowOf(set, folder));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
  await session.close();
}
print();

async function rowOf(set: string, folder: string) {
  const errors = Object.fromEntries(columns.map((column) => [column, [] as number[]])) as Record<
    Column,
    number[]
  >;
  const [third, thirdUnbiased]: [number[], number[]] = [[], []];
  for (let seed = 0; seed < seeds; seed++) {
    const [train, test] = splitOf(folder, seed);
    for (const [name, make] of Object.entries(trainers) as [
      keyof typeof trainers,
      (seed: number) => ALS | SGD,
    ][]) {
      const { training } = await make(seed).fit(train, { validation: test });
      if (training?.baselines === undefined) throw new Error(`${set}: no pairs to test with`);
      const [after3, last] = [training.iterations[2].testRmse, training.iterations.at(-1)?.testRmse].map(
        Number,
      );
      errors[name].push(last);
      if (name === 'ALS') {
        third.push(after3 / last);
        errors.mean.push(training.baselines.mean.rmse);
        errors['damped means'].push(training.baselines.dampedMeans.rmse);
      }
      if (name === 'ALS, no biases') thirdUnbiased.push(after3 / last);
    }
    errors['SVD-10'].push(values.svd === undefined ? Number.NaN : await svd(values.svd, train, test, seed));
    console.error(
      `${set}, seed ${seed}: ${columns.map((column) => `${column} ${errors[column].at(-1)?.toFixed(4)}`).join(', ')}`,
    );
  }
  return { set, errors, third, thirdUnbiased };
}

function splitOf(folder: string, seed: number): readonly [Dataset, Dataset] {
  if (existsSync(join(folder, 'train.parquet')))
    return [
      session.read.parquet(join(folder, 'train.parquet')),
      session.read.parquet(join(folder, 'test.parquet')),
    ];
  const [train, test] = session.read
    .parquet(join(folder, 'ratings.parquet'))
    .randomSplit([0.9, 0.1], { seed });
  return [train, test];
}

async function svd(python: string, train: Dataset, test: Dataset, seed: number): Promise<number> {
  const [from, to] = [join(scratch, 'train'), join(scratch, 'test')];
  await train.write.parquet(from, { overwrite: true });
  await test.write.parquet(to, { overwrite: true });
  return Number(
    execFileSync(python, [join(root, 'bench/quality/quality-svd.py'), from, to, String(seed)], {
      encoding: 'utf8',
    }),
  );
}

function print(): void {
  const mean = (list: readonly number[]) => list.reduce((sum, value) => sum + value, 0) / list.length;
  const cell = (value: number, of?: number) =>
    Number.isNaN(value)
      ? '-'
      : `${value.toFixed(3)}${of === undefined ? '' : ` (${(value / of).toFixed(3)})`}`;
  console.log(
    `${describeMachine()}\n\n\`node bench/quality/quality.ts ${process.argv
      .slice(2)
      .map((word) => (word === values.svd ? 'PYTHON' : word))
      .join(' ')}\`: the mean over ${seeds} seeds; in brackets over that of damped means.\n`,
  );
  console.log(`| set | ${columns.join(' | ')} | ALS after 3 / after 10, the worst | the same, no biases |`);
  console.log(`|---|${[...columns, '', ''].map(() => '---|').join('')}`);
  for (const { set, errors, third, thirdUnbiased } of rows) {
    const damped = mean(errors['damped means']);
    const cells = columns.map((column) =>
      cell(mean(errors[column]), column === 'mean' || column === 'damped means' ? undefined : damped),
    );
    console.log(
      `| ${set} | ${[...cells, cell(Math.max(...third)), cell(Math.max(...thirdUnbiased))].join(' | ')} |`,
    );
  }
  const ratio = (column: Column) =>
    mean(rows.map(({ errors }) => mean(errors[column]) / mean(errors['damped means'])));
  const worst = (column: Column) =>
    Math.max(
      ...rows.flatMap(({ errors }) =>
        errors[column].map((error, seed) => error / errors['damped means'][seed]),
      ),
    );
  for (const [label, of] of [
    ['mean over the sets', ratio],
    ['the worst seed of any set', worst],
  ] as const)
    console.log(
      `| ${label} | | | ${columns
        .slice(2)
        .map((column) => cell(of(column)))
        .join(' | ')} | | |`,
    );
}
