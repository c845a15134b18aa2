/** Every example, and the README's, runs as it is printed: against the built package. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'examples');
const run = promisify(execFile);
const expected: Readonly<Record<string, RegExp>> = {
  '01-train.ts': /iteration 10: test RMSE 1\.4\d+\n(.|\n)*RMSE 1\.4\d+, MAE 1\.0\d+ over \d+ pairs(.|\n)*"user": 26, "rank": 3(.|\n)*saved to /,
  '02-embed-in-your-stream.ts': /user 0 item 48 -> [45]\.\d+\nuser 0 item 49 -> [01]\.\d+\nuser 1 item 48 -> [01]/,
  '03-own-operator.ts': /parquet-source > scale-ratings > random-split > select-ratings(.|\n)*RMSE 0\.17\d+ on a scale of 0 to 1/,
  '04-cross-validate.ts': /(rank [48], regParam 0\.[12]: RMSE 1\.[56]\d+, MAE 1\.\d+\n){4}[CG]PU: .*\nbest: rank 8, regParam 0\.2, RMSE 1\.5\d+ over 3 folds\nRMSE 1\.5\d+ on the \d+ later ratings/,
  '05-query-with-duckdb.ts': /^1\d{6} recommendations of 10506 films for 16554 users\n(film \d+: for \d+ users; \d{2,} ratings with a mean of [89](\.\d)?\n){5}$/,
  '06-csv-to-recommendations.ts': /listener: Utf8, 1: song: Utf8, 2: stars: Int32(.|\n)*\nlistener,rank,song,prediction\n(listener-0,\d,"song, no\. \d?[02468]",[45]\.\d+\n){3}/,
  '07-update-a-model.ts': /^701 new users, 497 new films in 8961 new ratings\nbefore the update: RMSE 1\.54\d+ over 8639 known pairs, 1366 unknown\nupdated: RMSE 1\.53\d+ over 8713 known pairs, 1292 unknown\ntrained anew: RMSE 1\.52\d+ over 8713 known pairs, 1292 unknown\n$/,
};

describe('the examples', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'));

  it('are all expected here', () => {
    expect(files).toEqual(Object.keys(expected));
  });

  it.each(files)('%s', async (file) => {
    const { stdout } = await run(process.execPath, [join(folder, file)]);
    expect(stdout).toMatch(expected[file]);
  });
});

describe('the README', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');

  it('has a program that runs', async () => {
    const [, program] = /^```ts\n(.*?)^```/ms.exec(readme) ?? [];
    const { stdout } = await run(process.execPath, ['--input-type=module-typescript', '--eval', program], { cwd: root });
    expect(stdout).toMatch(/rmse: 1\.4\d+,\s+mae: 1\.\d+,\s+pairs: \d+,\s+coldPairs: \d+/);
  });

  it('has command lines that run, one after the other', async () => {
    rmSync(join(root, 'build/model'), { recursive: true, force: true });
    const outputs: string[] = [];
    for (const [, line] of readme.matchAll(/^ +npx factorflow (.*)$/gm)) outputs.push((await run(process.execPath, ['dist/cli/main.js', ...line.split(' ')], { cwd: root })).stdout);
    expect(outputs).toEqual([expect.stringMatching(/test RMSE +1\.\d+/), expect.stringContaining('prediction')]);
  });
});
