import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ALS, type AlsOptions, type Dataset, type Model, Session } from '../../index.ts';
import { folderOf } from '../engines/sets.ts';
import { type Case, mean, type Row } from '../harness.ts';

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
const metric = 'ndcg@20';

const implicit: Case = {
  about:
    'Rankings of implicit data with default parameters, compared with popularity, with each form of ' +
    'weights with tuned α, and with the Python library implicit: the table of docs/measured/quality.md. ' +
    'A round is a seed, which splits a set 80 to 20; ndcg@20 of up to 5,000 users over all items that ' +
    'they do not have in the 80 %. `best of W`: weights W with the best of five α, from a quarter to ' +
    'four times the default, chosen on the 20 % itself. --python has implicit, numpy, scipy and ' +
    'pyarrow: `AlternatingLeastSquares()` with unchanged values, and with log(1 + r).',
  options: { sets: Object.keys(files).join(','), rank: '32', python: '' },
  columns: { [metric]: '', α: '' },
  rounds: 2,
  figure: mean,
  async *rows({ options: { sets, rank, python }, scratch }) {
    await using session = await Session.create({ device: 'cpu' });
    for (const set of sets.split(',')) {
      const folder = folderOf(dirname(`${files[set]}.parquet`));
      const file = join(folder ?? '', `${files[set].replace(/.*\//, '')}.parquet`);
      if (folder === undefined || !existsSync(file)) continue;
      const split = (seed: number) => session.read.parquet(file).randomSplit([0.8, 0.2], { seed });
      const fit = async (seed: number, options: AlsOptions) => {
        const [train, test] = split(seed);
        const als = new ALS({ implicitPrefs: true, rank: Number(rank), seed, ...options });
        return evaluate(await als.fit(train), train, test);
      };
      const best = async (seed: number, weight: AlsOptions['weight']) => {
        const { α } = await fit(seed, {});
        const all: Awaited<ReturnType<typeof evaluate>>[] = [];
        for (const factor of [0.25, 0.5, 1, 2, 4]) all.push(await fit(seed, { weight, alpha: α * factor }));
        return all.reduce((one, other) => (other[metric] > one[metric] ? other : one));
      };
      const spark = async (seed: number) => {
        const [train, test] = split(seed);
        const als = ALS.spark({ implicitPrefs: true, rank: Number(rank), seed });
        return evaluate(await als.fit(train), train, test);
      };
      const forms = (['raw', 'binary', 'log', 'bm25'] as const).map((form) => {
        return [`best of ${form}`, (seed: number) => best(seed, form)] as const;
      });
      const byPython = (values: 'values' | 'log') => async (seed: number) => {
        const parts = split(seed).map((part, at) => [part, join(scratch, `${at}`)] as const);
        for (const [part, to] of parts) await part.write.parquet(to, { overwrite: true });
        const script = join(import.meta.dirname, '../engines/implicit.py');
        const args = [script, ...parts.map(([, to]) => to), values];
        return { [metric]: Number(execFileSync(python, args, { encoding: 'utf8' })) };
      };
      const engines: Row['engines'] = {
        default: (seed) => fit(seed, {}),
        popularity: async (seed) => ({ [metric]: (await fit(seed, {})).popularity }),
        ...Object.fromEntries(forms),
        '`ALS.spark`': spark,
        ...(python && { 'implicit, values': byPython('values'), 'implicit, log': byPython('log') }),
      };
      yield { name: set, engines };
    }
  },
};
export default implicit;

async function evaluate(model: Model, train: Dataset, test: Dataset) {
  const { metrics, baselines } = await model.evaluateRanking(test, {
    k: 20,
    exclude: train,
    metrics: ['ndcg'],
    resamples: 0,
    rankUsers: 5000,
  });
  if (baselines?.popularity === undefined) throw new Error('no pairs to test with');
  const { alpha } = model.metadata.params as { readonly alpha: number };
  return { [metric]: metrics[metric], α: alpha, popularity: baselines.popularity[metric] };
}
