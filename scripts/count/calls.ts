/**
 * What one `train` of movietweetings-100k enters from main to the saved model, on the main thread:
 * functions, async functions (the steps of its story: all that waits, reads, runs or writes), their files, and the
 * calls that climb into a folder from which they were reached. `--list` prints the climbs.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Recorded, RecordedFunction } from './record-calls.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-calls-'));
try {
  const output = join(folder, 'calls.json');
  execFileSync(
    process.execPath,
    [
      '--import',
      pathToFileURL(join(import.meta.dirname, 'record-calls.ts')).href,
      join(root, 'cli/main.ts'),
      'train',
      join(root, 'examples/data/movietweetings-100k/ratings.parquet'),
      '--model-dir',
      join(folder, 'model'),
      '--device',
      'cpu',
    ],
    { env: { ...process.env, FACTORFLOW_CALLS: output }, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const { functions, climbs }: Recorded = JSON.parse(readFileSync(output, 'utf8'));
  const report = (name: string, entered: readonly RecordedFunction[], climbed: Recorded['climbs']) => {
    const files = new Set(entered.map(({ file }) => file));
    console.log(`${name}: ${entered.length} in ${files.size} files, ${climbed.length} climbs`);
  };
  report('functions', functions, climbs);
  report(
    'async functions',
    functions.filter(({ waits }) => waits),
    climbs.filter(([, callee]) => callee.waits),
  );
  if (process.argv.includes('--list')) {
    for (const pair of climbs) {
      console.log(pair.map(({ file, name, line }) => `${file}:${line} ${name}`).join('  ->  '));
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}
