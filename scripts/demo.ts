/** The demo of `npm run demo`: the command line on the real ratings in examples/data. */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const ratings = 'examples/data/movietweetings-100k/ratings.parquet';
const titles = 'examples/data/movietweetings-100k/titles.parquet';
const model = 'build/demo/model';
const rankings = 'build/demo/rankings';
const report = 'build/demo/report.html';
const lists = `--users 10136 --n 10 --exclude ${ratings} --item-names ${titles}`;

run(
  '1. Train ALS on 90 % of 100,000 movie ratings (0 to 10), with the error on the other 10 % after each iteration',
  `train ${ratings} --model-dir ${model} --force --test-fraction 0.1 --seed 42 --rank 16 --item-names ${titles} --report ${report}`,
);
run(
  '2. The ten highest predicted ratings of user 10136, who likes 2001: A Space Odyssey, Metropolis and Zelig',
  `recommend ${model} ${lists}`,
);
run(
  '3. Train on the same ratings as implicit data: what each user chose to watch',
  `train ${ratings} --implicit --model-dir ${rankings} --force --test-fraction 0.1 --seed 42 --rank 16`,
);
run('4. Ten recommendations of that model for the same user', `recommend ${rankings} ${lists}`);
console.log(
  '\nThe first model predicts ratings, and its list has films that almost every user would rate high. The second ranks films by what this user chose: for lists of recommendations train with --implicit.',
);
console.log(
  `\nThe models are in ${join(root, 'build/demo')}: Parquet folders that Spark, DuckDB or Python can read.`,
);
console.log(`The report of the first training is ${join(root, report)}: open it in a browser.`);

function run(title: string, args: string): void {
  console.log(`\n${title}\n$ factorflow ${args}\n`);
  const { status } = spawnSync(
    process.execPath,
    [join(root, 'dist/programs/cli/main.js'), ...args.split(' ')],
    { cwd: root, stdio: 'inherit' },
  );
  if (status !== 0) process.exit(status ?? 1);
}
