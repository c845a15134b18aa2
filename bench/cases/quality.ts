import { execFileSync } from 'node:child_process';
import { basename, join } from 'node:path';
import type { DeviceRequest } from '../../api/devices/device-request.ts';
import { ALS, Session, SGD, type TrainingReport } from '../../index.ts';
import { folderOf, splitOf } from '../engines/sets.ts';
import { type Case, type Given, mean, type Values } from '../harness.ts';

type Trainer = (rank: number | undefined, seed: number) => ALS | SGD;

const trainers: Readonly<Record<string, Trainer>> = {
  ALS: (rank, seed) => new ALS({ rank, seed }),
  'ALS, no biases': (rank, seed) => new ALS({ rank, seed, biases: false }),
  SGD: (rank, seed) => new SGD({ rank, seed }),
  'SGD, no biases': (rank, seed) => new SGD({ rank, seed, biases: false }),
  '`ALS.spark()`': (rank, seed) => ALS.spark({ rank, seed }),
};

const quality: Case = {
  about:
    'Test RMSE with default parameters compared with means, on explicit ratings: the tables of ' +
    'docs/measured/quality.md. A round is a seed, which splits a set 90 to 10 and draws the initial ' +
    'factors (douban-monti, and folders of `factorflow generate`, have their own split). Pairs of users ' +
    'or items without training ratings are left out. --trainers chooses engines; --svd is a Python with ' +
    'scikit-surprise, whose SVD has 10 factors.',
  options: {
    sets: 'filmtrust,ml-latest-small,movietweetings-100k,douban-monti,bookcrossing,epinions-770k',
    ranks: '',
    trainers: Object.keys(trainers).join(';'),
    svd: '',
    device: 'cpu',
  },
  columns: { 'test RMSE': '', 'of damped means': '', 'after 3 of last': '', 'train RMSE': '', training: 's' },
  rounds: 5,
  figure: mean,
  async *rows(given) {
    const { options, scratch } = given;
    await using session = await Session.create({ device: options.device as DeviceRequest });
    for (const set of options.sets.split(',')) {
      const folder = folderOf(set);
      if (folder === undefined) continue;
      for (const rank of options.ranks.split(',')) {
        let report: TrainingReport | undefined;
        const fit = async (make: Trainer, seed: number) => {
          const [train, validation] = splitOf(session, folder, seed);
          const { training } = await make(rank === '' ? undefined : Number(rank), seed).fit(train, {
            validation,
          });
          return cellsOf((report = training));
        };
        const own = options.trainers.split(';').map((name) => {
          return [name, (seed: number) => fit(trainers[name], seed)] as const;
        });
        const means = {
          'damped means': () => ({ 'test RMSE': report?.baselines?.dampedMeans.rmse }),
          mean: () => ({ 'test RMSE': report?.baselines?.mean.rmse }),
        };
        const svd = async (seed: number) => {
          const files = splitOf(session, folder, seed).map(
            (part, at) => [part, join(scratch, `${at}`)] as const,
          );
          for (const [part, file] of files) await part.write.parquet(file, { overwrite: true });
          return {
            'test RMSE': byPython(
              'svd.py',
              files.map(([, file]) => file),
              given,
              [String(seed)],
            ),
          };
        };
        yield {
          name: `${basename(folder)}${rank && `, rank ${rank}`}`,
          engines: { ...Object.fromEntries(own), ...means, ...(options.svd && { 'SVD-10': svd }) },
        };
      }
    }
  },
};
export default quality;

function cellsOf(training: TrainingReport | undefined): Values {
  const last = training?.iterations.at(-1);
  if (last?.testRmse === undefined || training?.baselines === undefined)
    throw new Error('no pairs to test with');
  return {
    'test RMSE': last.testRmse,
    'of damped means': last.testRmse / training.baselines.dampedMeans.rmse,
    'after 3 of last': Number(training.iterations[2]?.testRmse) / last.testRmse,
    'train RMSE': last.trainRmse,
    training: training.seconds.train,
  };
}

function byPython(
  script: string,
  files: readonly string[],
  { options }: Given,
  more: readonly string[],
): number {
  const path = join(import.meta.dirname, '../engines', script);
  return Number(execFileSync(options.svd, [path, ...files, ...more], { encoding: 'utf8' }));
}
