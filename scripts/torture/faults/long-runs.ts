import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { Replacement, runCommand } from '../commands.ts';

/** Ratings that loading keeps in files at the smallest memory budget. */
const SPILLED = 400_000;

/**
 * Commands that read and write more than an input and an output: checkpoints, spilled ratings, models to go
 * on from, inputs of each format. `folder` has data.parquet, few.csv and the model of `replacements`.
 */
export async function longRuns(folder: string): Promise<Replacement[]> {
  const at = (name: string) => join(folder, name);
  const [data, few, checkpoints] = [at('data.parquet'), at('few.csv'), at('checkpoints')];
  const small = ['--rank', '4', '--device', 'cpu', '--workers', '2'];
  const often = ['--checkpoint-dir', checkpoints, '--checkpoint-interval', '1'];
  const made = [
    ['train', data, ...small, '--max-iter', '2', ...often, '--model-dir', at('begun')],
    ['convert', few, at('few.arrow')],
    ['convert', few, at('few.ndjson')],
    ['convert', few, at('few.csv.gz')],
  ];
  for (const line of made) {
    const { code, stderr } = await runCommand([...line, '--quiet']);
    if (code !== 0) throw new Error(stderr);
  }
  cpSync(checkpoints, at('checkpoints-kept'), { recursive: true });
  const spilled = ['--memory-budget', `${baseBytes(1) + 18 * SPILLED}`, '--spill-dir', at('spill')];
  mkdirSync(at('spill'));
  writeFileSync(at('many.csv'), manyRatings());
  const one = ['--rank', '2', '--device', 'cpu', '--workers', '1', '--no-biases'];
  return [
    new Replacement(
      folder,
      'resumed',
      ['train', data, ...small, ...often, '--resume', '--max-iter', '4', '--model-dir'],
      ['--max-iter', '3'],
      { from: at('checkpoints-kept'), to: checkpoints },
    ),
    new Replacement(
      folder,
      'updated',
      ['train', few, '--init-model', at('model'), '--device', 'cpu', '--workers', '2', '--model-dir'],
      ['--max-iter', '1'],
    ),
    new Replacement(
      folder,
      'spilled',
      ['train', at('many.csv'), ...one, ...spilled, '--max-iter', '2', '--model-dir'],
      ['--seed', '7'],
    ),
    new Replacement(folder, 'of-arrow.csv', ['convert', at('few.arrow')], ['--to', 'tsv']),
    new Replacement(folder, 'of-ndjson.csv', ['convert', at('few.ndjson')], ['--to', 'tsv']),
    new Replacement(folder, 'of-gzip.csv', ['convert', at('few.csv.gz')], ['--to', 'tsv']),
    new Replacement(folder, 'rows.arrow', ['convert', few], ['--codec', 'zstd']),
  ];
}

function manyRatings(): string {
  const lines = Array.from(
    { length: SPILLED },
    (_, k) => `${(k * 7919) % 700},${Math.floor(k / 700)},${(k % 5) + 1}`,
  );
  return `user,item,rating\n${lines.join('\n')}\n`;
}
