/**
 * Searches compared with defaults and with separate commands.
 *
 *     npm run build && node bench/quality/tune.ts quality [--seeds 3] [--sets filmtrust,...] [--trials 30]
 *     npm run build && node bench/quality/tune.ts commands RATINGS [--try 'rank=8,16 ...'] [-- flags of train]
 *
 * `quality`: test RMSE of the best of 30 random trials, compared with the defaults. The search only uses the
 * training part, of which it holds out a tenth. Sets and splits are as in bench/quality/quality.ts.
 * `commands`: the wall time of one `tune` of 20 settings compared with 20 `train` commands with the same
 * settings and split, and the best setting of each.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ALS, type Dataset, Session, TrainValidationSplit } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '3' },
    sets: { type: 'string' },
    trials: { type: 'string', default: '30' },
    try: { type: 'string', default: 'rank=8,16,24,32 reg-param=0.01,0.02,0.05,0.1,0.2' },
  },
});
const root = resolve(import.meta.dirname, '../..');
const program = join(root, 'dist/programs/cli/main.js');
const scratch = mkdtempSync(join(tmpdir(), 'factorflow-tune-'));
const [what, path = ''] = positionals;

async function quality(): Promise<void> {
  const data = process.env.FACTORFLOW_DATA ?? '';
  const session = await Session.create({ device: 'cpu' });
  console.log(
    `| set | damped means | defaults | best of ${values.trials} trials | parameters (seed 0) |\n|---|---|---|---|---|`,
  );
  for (const set of values.sets?.split(',') ?? sets) {
    const folder = set === 'movietweetings-100k' ? join(root, 'examples/data', set) : join(data, set);
    if (!existsSync(folder)) {
      console.error(`left out: ${set}, which is not in FACTORFLOW_DATA`);
      continue;
    }
    const found: Found[] = [];
    for (let seed = 0; seed < Number(values.seeds); seed++) found.push(await tuned(session, folder, seed));
    printSet(set, found);
  }
  await session.close();
}

const sets = [
  'filmtrust',
  'ml-latest-small',
  'movietweetings-100k',
  'douban-monti',
  'bookcrossing',
  'epinions-770k',
];

/** Test RMSE of one split. */
interface Found {
  readonly means: number;
  readonly defaults: number;
  readonly tuned: number;
  readonly params: object;
}

async function tuned(session: Session, folder: string, seed: number): Promise<Found> {
  const [train, test] = splitOf(session, folder, seed);
  const { model, best } = await new TrainValidationSplit({
    estimator: (params) => new ALS({ seed, ...params }),
    space: {
      rank: { from: 4, to: 64, scale: 'log', whole: true },
      regParam: { from: 0.003, to: 0.2, scale: 'log' },
      regOffset: { from: 0, to: 30 },
    },
    trials: Number(values.trials),
    search: 'random',
    seed,
  }).fit(train);
  const { rmse, baselines } = await model.evaluate(test);
  const defaults = await (await new ALS({ seed }).fit(train)).evaluate(test);
  return {
    means: baselines?.dampedMeans.rmse ?? Number.NaN,
    defaults: defaults.rmse,
    tuned: rmse,
    params: best.params,
  };
}

function printSet(set: string, found: readonly Found[]): void {
  const mean = (name: 'means' | 'defaults' | 'tuned') =>
    found.reduce((sum, one) => sum + one[name], 0) / found.length;
  const cell = (value: number) => `${value.toFixed(4)} (${(value / mean('means')).toFixed(3)})`;
  const params = Object.entries(found[0].params).map(([name, value]) => `${name} ${value}`);
  const cells = [mean('means').toFixed(4), cell(mean('defaults')), cell(mean('tuned')), params.join(', ')];
  console.log(`| ${set} | ${cells.join(' | ')} |`);
}

function splitOf(session: Session, folder: string, seed: number): readonly [Dataset, Dataset] {
  if (existsSync(join(folder, 'train.parquet')))
    return [
      session.read.parquet(join(folder, 'train.parquet')),
      session.read.parquet(join(folder, 'test.parquet')),
    ];
  return session.read.parquet(join(folder, 'ratings.parquet')).randomSplit([0.9, 0.1], { seed }) as [
    Dataset,
    Dataset,
  ];
}

interface Trial {
  readonly params: Readonly<Record<string, number>>;
  readonly value: number;
}

interface Ran {
  readonly seconds: number;
  readonly json: Readonly<Record<string, unknown>>;
}

function command(...args: readonly string[]): Ran {
  const started = performance.now();
  const all = [program, ...args, '--device', 'cpu', '--json', '--quiet', '--force'];
  const output = execFileSync(process.execPath, all, { encoding: 'utf8' });
  return {
    seconds: (performance.now() - started) / 1000,
    json: JSON.parse(output) as Readonly<Record<string, unknown>>,
  };
}

const tune = (model: string, ...flags: readonly string[]) =>
  command('tune', path, '--model-dir', join(scratch, model), '--try', values.try, ...flags);

/** Runs `train` with these parameters and the split of `tune`. */
function trainAlone(params: Trial['params']): Ran {
  const flags = Object.entries(params).flatMap(([name, value]) => [
    `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
    String(value),
  ]);
  return command('train', path, '--model-dir', join(scratch, 'alone'), '--test-fraction', '0.1', ...flags);
}

function commands(): void {
  const settings = (tune('warm').json.trials as readonly Trial[]).map(({ params }) => params);
  const timed = ['', '--warm-start'].map((flag) => ({
    flag,
    ...tune('model', ...(flag === '' ? [] : [flag])),
  }));
  let separate = 0;
  const alone = settings.map((params): Trial => {
    const { seconds, json } = trainAlone(params);
    separate += seconds;
    return { params, value: json.testRmse as number };
  });
  console.log(`| | seconds | of the commands | best |\n|---|---|---|---|`);
  console.log(`| ${settings.length} commands \`train\` | ${separate.toFixed(1)} | | ${bestOf(alone)} |`);
  for (const { flag, seconds, json } of timed)
    console.log(
      `| \`tune ${flag}\`, with the last training on all ratings | ${seconds.toFixed(1)} | ${(seconds / separate).toFixed(2)} | ${bestOf(json.trials as readonly Trial[])} |`,
    );
}

/** "{"rank":8} 0.8123": the trial with the smallest error. */
function bestOf(trials: readonly Trial[]): string {
  const [best] = trials.toSorted((left, right) => left.value - right.value);
  return `${JSON.stringify(best?.params)} ${best?.value.toFixed(4)}`;
}

try {
  console.log(`${describeMachine()}\n`);
  if (what === 'commands') commands();
  else await quality();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
