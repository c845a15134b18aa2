/**
 * ALS by CG without A at ranks above 512, on a GPU: trainings with Netflix's and MovieLens-20M's shapes at
 * ranks 1,024, 2,048 and 4,096, with biases, without, and of implicit data. Each training runs in its own
 * process; the figure is the median time of its iterations in seconds, without evaluation.
 *
 *     npm run build
 *     node bench/gpu/large-ranks.ts [FOLDER] [--presets netflix] [--ranks 1024] [--precision f16] [--json]
 *
 * FOLDER has a folder for each data set; those that are missing are generated. `--json` prints a result in
 * the form of bench/results/ instead of the table.
 *
 * "θ GB/s" is the rate at which rows of θ are read in a pass over the ratings: bytes of θ of all ratings, for
 * both sides, the first residual and each step, divided by the time. On the CPU the same trainings run with
 * `--device cpu`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Cell } from '../../scripts/docs/results.ts';
import { describeMachine } from '../machine.ts';
import { newResult } from '../new-result.ts';

interface TrainResult {
  readonly ratings: number;
  readonly iterations: readonly {
    readonly seconds: number;
    readonly loss: number;
    readonly testRmse?: number;
  }[];
  readonly memory: Readonly<Record<string, { readonly measured: number }>>;
}

const STEPS = 6;
const ITERATIONS = 4;

const forms = [
  { name: 'biases', flags: ['--test'] },
  { name: 'no biases', flags: ['--test', '--no-biases'] },
  { name: 'implicit', flags: ['--implicit'] },
] as const;

const root = resolve(import.meta.dirname, '../..');
const cli = join(root, 'dist/programs/cli/main.js');
const { values, positionals } = parseArgs({
  options: {
    json: { type: 'boolean' },
    presets: { type: 'string', default: 'netflix,movielens20m' },
    ranks: { type: 'string', default: '1024,2048,4096' },
    precision: { type: 'string', default: 'f16,f32' },
    device: { type: 'string', default: 'gpu' },
  },
  allowPositionals: true,
});
const folder = resolve(positionals[0] ?? join(root, 'build/bench'));
const print = values.json ? console.error : console.log;
const rows: Cell[][] = [];
mkdirSync(folder, { recursive: true });

for (const preset of values.presets.split(',')) {
  const data = join(folder, preset);
  if (!existsSync(data)) factorflow(['generate', '--preset', preset, '--seed', '1', '--output', data]);
  print(`\n${preset}: ${describeMachine()}`);
  print(
    `rank  form       θ    s an iteration (min-max)    θ GB/s   GiB    loss after ${ITERATIONS}   test RMSE`,
  );
  for (const rank of values.ranks.split(',').map(Number))
    for (const form of forms)
      for (const precision of values.precision.split(',')) bench(preset, data, rank, form, precision);
}

if (values.json)
  console.log(
    newResult({
      id: 'als-gpu-above-512',
      title: 'ALS on a GPU at ranks above 512, without A',
      data:
        'factorflow generate --preset netflix (and movielens20m) --seed 1 --output FOLDER/PRESET; ' +
        `${STEPS} CG steps`,
      commands: ['node bench/gpu/large-ranks.ts FOLDER'],
      columns: [
        { name: 'data' },
        { name: 'rank' },
        { name: 'form' },
        { name: 'θ' },
        { name: 'time', unit: 's an iteration' },
        { name: 'θ read', unit: 'GB/s' },
        { name: 'memory', unit: 'GiB' },
        { name: `loss after ${ITERATIONS}` },
        { name: 'test RMSE' },
      ],
      rows,
    }),
  );

function bench(
  preset: string,
  data: string,
  rank: number,
  { name, flags }: (typeof forms)[number],
  precision: string,
): void {
  const given = flags.flatMap((flag) => (flag === '--test' ? [flag, join(data, 'test')] : [flag]));
  const options = { '--rank': rank, '--cg-steps': STEPS, '--max-iter': ITERATIONS, '--seed': 1 };
  try {
    const training = ['train', join(data, 'train'), '--model-dir', join(folder, 'model'), '--force'];
    const result = JSON.parse(
      factorflow([
        ...training.concat('--json', '--quiet', '--device', values.device, '--precision', precision),
        ...given,
        ...Object.entries(options).flatMap(([flag, value]) => [flag, String(value)]),
      ]),
    ) as TrainResult;
    const seconds = result.iterations.map((one) => one.seconds).sort((left, right) => left - right);
    const median = (seconds[1] + seconds[2]) / 2;
    const bytes = 2 * (STEPS + 1) * result.ratings * rank * (precision === 'f16' ? 2 : 4);
    const rate = bytes / median / 1e9;
    const { loss, testRmse } = result.iterations[ITERATIONS - 1];
    const { host: _, ...devices } = result.memory;
    const memory = Math.max(...Object.values(devices).map((one) => one.measured)) / 2 ** 30;
    rows.push([preset, rank, name, precision, seconds, rate, memory, loss, testRmse ?? '-']);
    const range = `(${seconds[0].toFixed(2)}-${seconds[ITERATIONS - 1].toFixed(2)})`;
    print(
      [
        String(rank).padEnd(5),
        name.padEnd(10),
        precision.padEnd(4),
        `${median.toFixed(2)} ${range}`.padEnd(27),
        rate.toFixed(0).padEnd(8),
        memory.toFixed(2).padEnd(6),
        loss.toExponential(5).padEnd(14),
        testRmse?.toFixed(4) ?? '-',
      ].join(' '),
    );
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error);
    print(`${rank} ${name} ${precision}: ${why}`);
  }
}

function factorflow(args: readonly string[]): string {
  return execFileSync(process.execPath, [cli, ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
