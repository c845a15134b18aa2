/**
 * Rankings of implicit data with default parameters, compared with popularity, with each form of weights with
 * tuned α, and with the Python library implicit; prints the table of docs/measured/quality.md.
 *
 *     npm run build && FACTORFLOW_DATA=DIR node bench/quality/implicit.ts [--sets gowalla,...] [--seeds 2] [--rank 32] [--python PYTHON]
 *
 * Each seed splits a set 80 to 20, with repetitions of a pair together; the value is ndcg@20 of up to 5,000
 * users over all items that they do not have in the 80 %. `best of W`: weights of form W with the best of
 * five α, from a quarter to four times the default, and default λ and ν. Choosing α on the 20 % itself
 * favours these columns. Ratings of explicit sets count as positives. PYTHON has implicit, numpy, scipy and
 * pyarrow: its `AlternatingLeastSquares()` with defaults, with unchanged values and with log(1 + r).
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ALS, type AlsOptions, type Dataset, type Model, Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2' },
    sets: { type: 'string' },
    rank: { type: 'string', default: '32' },
    python: { type: 'string' },
  },
});
const data = process.env.FACTORFLOW_DATA ?? '';
const examples = resolve(import.meta.dirname, '../../examples/data');
const files: Readonly<Record<string, string>> = {
  'steam hours': 'steam-200k/play-hours',
  'steam purchases': 'steam-200k/purchases',
  'retailrocket views': 'retailrocket/views',
  'retailrocket carts': 'retailrocket/addtocart',
  gowalla: 'gowalla-lightgcn/train',
  'citeulike-a': 'citeulike-a/ratings',
  'citeulike-t': 'citeulike-t/ratings',
  bookcrossing: 'bookcrossing/history',
  epinions: 'epinions-770k/ratings',
  movietweetings: 'movietweetings-100k/ratings',
  douban: 'douban-monti/train',
  filmtrust: 'filmtrust/ratings',
  'ml-latest-small': 'ml-latest-small/ratings',
};
const forms = ['raw', 'binary', 'log', 'bm25'] as const;
const factors = [0.25, 0.5, 1, 2, 4];
const metric = 'ndcg@20';

interface Row {
  readonly set: string;
  readonly alpha: number;
  readonly popularity: number;
  readonly byDefault: number;
  readonly best: Readonly<Record<(typeof forms)[number], number>>;
  readonly spark: number;
  readonly python: readonly number[];
}

const session = await Session.create({ device: 'cpu' });
const scratch = mkdtempSync(join(tmpdir(), 'factorflow-implicit-'));
const rows: Row[] = [];
try {
  for (const set of values.sets?.split(',') ?? Object.keys(files)) {
    const file = join(set === 'movietweetings' ? examples : data, `${files[set]}.parquet`);
    if (!existsSync(file)) {
      console.error(`left out: ${set}, which is not in FACTORFLOW_DATA`);
      continue;
    }
    rows.push(await rowOf(set, session.read.parquet(file)));
    console.error(JSON.stringify(rows.at(-1)));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
  await session.close();
}
print();

async function rowOf(set: string, ratings: Dataset): Promise<Row> {
  const seeds: Omit<Row, 'set'>[] = [];
  for (let seed = 0; seed < Number(values.seeds); seed++) seeds.push(await bySeed(ratings, seed));
  const mean = (of: (row: Omit<Row, 'set'>) => number) =>
    seeds.reduce((sum, row) => sum + of(row), 0) / seeds.length;
  const best = Object.fromEntries(forms.map((form) => [form, mean((row) => row.best[form])])) as Row['best'];
  const python = (seeds[0].python ?? []).map((_, at) => mean((row) => row.python[at]));
  return {
    set,
    alpha: mean((row) => row.alpha),
    popularity: mean((row) => row.popularity),
    byDefault: mean((row) => row.byDefault),
    best,
    spark: mean((row) => row.spark),
    python,
  };
}

async function bySeed(ratings: Dataset, seed: number): Promise<Omit<Row, 'set'>> {
  const [train, test] = ratings.randomSplit([0.8, 0.2], { seed });
  const fit = (options: AlsOptions) =>
    new ALS({ implicitPrefs: true, rank: Number(values.rank), seed, ...options }).fit(train);
  const evaluate = async (model: Model, baselines = false) =>
    model.evaluateRanking(test, {
      k: 20,
      exclude: train,
      metrics: ['ndcg'],
      resamples: 0,
      rankUsers: 5000,
      baselines,
    });
  const first = await fit({});
  const { metrics, baselines } = await evaluate(first, true);
  if (baselines?.popularity === undefined) throw new Error('no pairs to test with');
  const { alpha } = first.metadata.params as { readonly alpha: number };
  const best: Record<string, number> = {};
  for (const weight of forms) {
    best[weight] = 0;
    for (const factor of factors) {
      const { metrics: found } = await evaluate(await fit({ weight, alpha: alpha * factor }));
      best[weight] = Math.max(best[weight], found[metric]);
    }
  }
  const spark = (
    await evaluate(await ALS.spark({ implicitPrefs: true, rank: Number(values.rank), seed }).fit(train))
  ).metrics[metric];
  return {
    alpha,
    popularity: baselines.popularity[metric],
    byDefault: metrics[metric],
    best: best as Row['best'],
    spark,
    python: await byPython(train, test),
  };
}

/** ndcg@20 of the Python library with unchanged values, and with their logarithm. */
async function byPython(train: Dataset, test: Dataset): Promise<number[]> {
  if (values.python === undefined) return [];
  const [trainFile, testFile] = [join(scratch, 'train'), join(scratch, 'test')];
  await train.write.parquet(trainFile, { overwrite: true });
  await test.write.parquet(testFile, { overwrite: true });
  const output = execFileSync(
    values.python,
    [join(import.meta.dirname, 'quality-implicit.py'), trainFile, testFile],
    { encoding: 'utf8' },
  );
  return JSON.parse(output) as number[];
}

function print(): void {
  console.log(`${describeMachine()}, rank ${values.rank}, ${values.seeds} seeds`);
  const python = values.python === undefined ? [] : ['implicit, values', 'implicit, log'];
  const heads = [
    'set',
    'default α',
    'popularity',
    'default',
    ...forms.map((form) => `best of ${form}`),
    'default / best',
    'default / popularity',
    '`ALS.spark`',
    ...python,
  ];
  console.log(`| ${heads.join(' | ')} |\n|${'---|'.repeat(heads.length)}`);
  for (const { set, alpha, popularity, byDefault, best, spark, python: others } of rows) {
    const largest = Math.max(...Object.values(best), byDefault);
    const cells = [
      set,
      alpha.toFixed(1),
      ...[popularity, byDefault, ...forms.map((form) => best[form])].map(digits),
      (byDefault / largest).toFixed(3),
      (byDefault / popularity).toFixed(2),
      digits(spark),
      ...others.map(digits),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

function digits(value: number): string {
  return value.toFixed(4);
}
