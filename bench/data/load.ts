/**
 * Measures loading by number of workers and by format: seconds from the first byte to both blocks, M
 * ratings/s, busy cores and peak resident memory, each of a `train` in its own process (rank 8, one
 * iteration), the median of several runs. Another build's command can be measured for comparison.
 *
 *     node bench/data/load.ts [--workers 1,2,4,8,16] [--runs 3] [--cli dist/programs/cli/main.js] RATINGS...
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median } from '../gpu/measure.ts';
import { describeMachine } from '../machine.ts';

interface Trained {
  readonly ratings: number;
  readonly seconds: { readonly load: number; readonly total: number };
  readonly peakRssBytes: number;
}

const { values: options, positionals: inputs } = parseArgs({
  allowPositionals: true,
  options: {
    workers: {
      type: 'string',
      default: [1, 2, 4, 8, 16].filter((count) => count <= availableParallelism()).join(','),
    },
    runs: { type: 'string', default: '3' },
    cli: { type: 'string', default: join(import.meta.dirname, '../../dist/programs/cli/main.js') },
  },
});

function train(input: string, workers: string, model: string): Trained {
  const command = [
    options.cli,
    'train',
    input,
    '--model-dir',
    model,
    '--force',
    '--rank',
    '8',
    '--max-iter',
    '1',
    '--no-biases',
    '--device',
    'cpu',
    '--workers',
    workers,
    '--json',
    '--quiet',
  ];
  return JSON.parse(
    execFileSync(process.execPath, command, { encoding: 'utf8', maxBuffer: 1 << 28 }),
  ) as Trained;
}

const folder = mkdtempSync(join(tmpdir(), 'factorflow-bench-'));
try {
  process.stdout.write(
    `${describeMachine()}; ${options.runs} runs each\n\n| ratings | workers | load, s | M ratings/s | peak RSS, MiB |\n|---|---|---|---|---|\n`,
  );
  for (const input of inputs) {
    for (const workers of options.workers.split(',')) {
      const runs = Array.from({ length: Number(options.runs) }, () =>
        train(input, workers, join(folder, 'model')),
      );
      const load = median(runs.map(({ seconds }) => seconds.load));
      const rss = median(runs.map(({ peakRssBytes }) => peakRssBytes));
      process.stdout.write(
        `| ${input} | ${workers} | ${load.toFixed(3)} | ${(runs[0].ratings / load / 1e6).toFixed(1)} | ${(rss / 2 ** 20).toFixed(0)} |\n`,
      );
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
