/** The demo of `npm run demo`: the command line on the real ratings in examples/data. */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const ratings = 'examples/data/movietweetings-100k/ratings.parquet';
const titles = 'examples/data/movietweetings-100k/titles.parquet';
const model = 'build/demo/model';
const report = 'build/demo/report.html';

run(
  '1. Train ALS on 90 % of 100,000 movie ratings (0 to 10), with the error on the other 10 % after each iteration',
  `train ${ratings} --model-dir ${model} --force --test-fraction 0.1 --seed 42 --rank 16 --item-names ${titles} --report ${report}`,
);
run('2. Ten recommendations for user 26, without what they rated already', `recommend ${model} --users 26 --n 10 --exclude ${ratings} --item-names ${titles}`);
console.log(`\nThe model is in ${join(root, model)}: Parquet folders that Spark, DuckDB or Python can read.`);
console.log(`The report of the training is ${join(root, report)}: open it in a browser.`);

function run(title: string, args: string): void {
  console.log(`\n${title}\n$ factorflow ${args}\n`);
  const { status } = spawnSync(process.execPath, [join(root, 'dist/programs/cli/main.js'), ...args.split(' ')], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
