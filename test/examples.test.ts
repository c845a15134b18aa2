/**
 * The examples, and the programs and command lines of the pages, run as they are printed, with the built
 * package. `npm test` checks the types of all examples and runs those that use the most of the package;
 * `npm run test:deep` runs all of them, on the oldest Node.
 */
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { isDeep } from './support/deep.ts';
import { oldestNode } from './support/oldest-node.ts';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'examples');
const node = isDeep ? await oldestNode() : { path: process.execPath, version: process.version };
const run = promisify(execFile);
const expected: Readonly<Record<string, RegExp>> = {
  '01-train.ts':
    /iteration 10: test RMSE 1\.4\d+\n(.|\n)*RMSE 1\.4\d+, MAE 1\.0\d+ over \d+ pairs(.|\n)*"user": 26, "rank": 3(.|\n)*saved to /,
  '02-embed-in-your-stream.ts':
    /user 0 item 48 -> [45]\.\d+\nuser 0 item 49 -> [01]\.\d+\nuser 1 item 48 -> [01]/,
  '03-own-operator.ts':
    /parquet-source > scale-ratings > random-split > select-ratings(.|\n)*RMSE 0\.14\d+ on a scale of 0 to 1/,
  '04-cross-validate.ts':
    /(rank [48], regOffset \d+: RMSE 1\.[45]\d+, MAE 1\.\d+( \(.*\))?\n){4}[CG]PU: .*\nbest: rank 8, regOffset 10, RMSE 1\.4\d+ over 3 folds\nRMSE 1\.4\d+ on the \d+ later ratings/,
  '05-query-with-duckdb.ts':
    /^1\d{6} recommendations of 10506 films for 16554 users\n(film \d+: for \d+ users; \d{2,} ratings with a mean of [89](\.\d)?\n){5}$/,
  '06-csv-to-recommendations.ts':
    /listener: Utf8, 1: song: Utf8, 2: stars: Int32(.|\n)*\nlistener,rank,song,prediction\n(listener-0,\d,"song, no\. \d?[02468]",[45]\.\d+\n){3}/,
  '07-update-a-model.ts':
    /^701 new users, 497 new films in 8961 new ratings\nbefore the update: RMSE 1\.45\d+ over 8639 known pairs, 1366 unknown\nupdated: RMSE 1\.45\d+ over 8713 known pairs, 1292 unknown\ntrained anew: RMSE 1\.44\d+ over 8713 known pairs, 1292 unknown\n$/,
  '08-serve-with-fastify.ts':
    /^\/recommend\/26\?n=3 -> 200 \{"user":26,"known":true,"items":\[(\{"item":\d+,"score":\d+\.\d+,"name":"[^"]+ \(\d{4}\)"\},?){3}\],"short":false,"unknownItems":0\}\n.*deny=68646,77777 -> 200 .*"unknownItems":1\}\n.*999999\?n=2 -> 200 \{"user":999999,"known":false,"fallback":"popular","items":\[\{"item":770828,"score":1812,"name":"Man of Steel \(2013\)"\},.*\n\/similar\/68646\?n=2 -> 200 \{"item":"68646","similar":\[\{"item":68646,"rank":1,"similarItem":\d+,"name":"[^"]+","similarity":0\.\d+\},.*\n\/similar\/5 -> 404 \{"error":"there is no item 5"\}\n.*n=0 -> 400 \{"error":"n must be a whole number from 1 to 1,000, got 0"\}\n3 ratings -> 200 \{"user":null,"known":true,"short":false,"unknownItems":1,"items":\[(\{"item":\d+,"score":\d+\.\d+,"name":"[^"]+","because":"The (Godfather|Dark Knight) \(\d{4}\)"\},?){2}\]\}\n0 ratings -> 200 \{"user":null,"known":false,"fallback":"popular","short":false,"unknownItems":0,"items":\[\{"item":770828,"score":1812,"name":"Man of Steel \(2013\)"\},.*\]\}\n$/,
  '09-rows-and-titles.ts': /^(\d?[13579] Song no\. \d?[13579] [45]\.\d\d\n){3}$/,
  '10-group-join-sort.ts':
    /^1154 active users, 32270 positive ratings\ngenre=Action genre=Adventure genre=Animation\n([^\n]+ \(\d{4}\), \w+: for [2-9]\d\d users\n){5}$/,
  '11-own-source-and-sink.ts':
    /^item 4: 158 good ratings\nitem 3: 157 good ratings\nitem 8: 100 good ratings\n$/,
  '12-duckdb-in-and-out.ts': /^4692 users, 9674 films\n([^\n]+ \(\d{4}\)\n){3}$/,
  '13-polars-frames.ts':
    /^67040 ratings of 2583 users\n(film \d+: for 2\d{3} users, [89](\.\d)? on average\n){3}$/,
  '15-shop.ts':
    /c0 +│ 5f0c1d2e-0000-4000-8000-000000000002 │ 2\.8645248\d+ │ 2026-05-30T00:00:00 [^]*\n(c[01] [123]: (tea|coffee) no\. \d+ for \d+\.\d+\n){6}$/,
};
/** It needs a server: example-postgres.test.ts runs it. */
const postgres = '14-postgres-cursor.ts';

/** What `npm test` runs: a model from training to its file, and what a reader tries first. */
const always = ['01-train.ts', '15-shop.ts', 'README.md'];
const runs = (name: string) => isDeep || always.includes(name);

describe(`the examples on Node ${node.version}`, () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts') && file !== postgres);

  const scratch = mkdtempSync(join(tmpdir(), 'factorflow-examples-'));
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it('are all expected here', () => {
    expect(files).toEqual(Object.keys(expected));
  });

  it('compile', async () => {
    const flags =
      '--noEmit --ignoreConfig --strict --target es2024 --module nodenext --skipLibCheck --types node';
    const paths = [...files, postgres].map((file) => join(folder, file));
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(
      process.execPath,
      [compiler, ...flags.split(' '), '--lib', 'es2024,esnext,dom', ...paths],
      { cwd: root },
    ).catch((error: { readonly stdout: string }) => error);
    expect(stdout).toBe('');
  });

  it.each(files.filter(runs))('%s', async (file) => {
    const { stdout } = await run(node.path, ['--experimental-strip-types', join(folder, file)], {
      env: { ...process.env, TMPDIR: scratch },
    });
    expect(stdout).toMatch(expected[file]);
  });

  it('end by themselves when they fail', async () => {
    const program =
      "import { Session } from 'factorflow'; const session = await Session.create({ workers: 2 }); await session.read.parquet('missing').schema(); await session.close();";
    await expect(
      run(node.path, ['--input-type=module', '--eval', program], { cwd: root }),
    ).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('DataError') });
  });
});

/** The output of each page's programs and command lines, in order. */
const outputs: Readonly<Record<string, readonly RegExp[]>> = {
  'README.md': [
    /^19050 recommendations\n$/,
    /test ndcg@10 +0\.\d+/,
    /^(?![^]*Shawshank)([^]*\(19[3-8]\d\) ){5}/,
    /test RMSE +1\.\d+/,
    /10136 │ +1 │ +\d+ │ The Shawshank Redemption \(1994\) /,
  ],
  'docs/README.md': [
    /best RMSE/,
    /users +1,385/,
    /Physical plan: als/,
    /test RMSE/,
    /RMSE/,
    /recommendations/,
    /prediction/,
    /predictions/,
    /cosine/,
    /share/,
    /ratings/,
    /float32/,
    /rows/,
    /WebAssembly/,
  ],
  'docs/getting-started.md': [
    /users +16,554/,
    /test RMSE +1\.\d+/,
    /Physical plan/,
    /prediction/,
    /recommendations/,
    /cosine/,
    /^1\.\d+ \d+\n$/,
  ],
  'docs/choosing.md': [/best: trial \d/, /^\{ rank: \d+, regOffset: \d+ \} 1\.\d+ 6 16554\n$/],
  'docs/questions.md': [
    /best: trial \d, rank \d+: rmse 1\.4/,
    /test ndcg@10 +0\.\d+; popularity 0\.\d+/,
    /test RMSE +1\.\d+; the mean 1\.\d+, damped means 1\.\d+/,
    /memory +host 7\.\d GiB, cpu [23]\.\d GiB/,
    /recommendations +157,670/,
    /^\{"command":"train"/,
    /^$/,
    /users +1\n/,
    /900001 │ +1 │(?![^]*│ +68646 │)/,
    /^$/,
    /10136 │ +1 │(?![^]*│ +68646 │)/,
    /WebGPU/,
    /share/,
  ],
  'docs/trouble.md': [/memory +host 2\.0 MiB, cpu/],
  'docs/plan.md': [/memory +host 2\.0 MiB, cpu 2\.7 MiB/],
  'docs/evaluating.md': [/train/, /test RMSE +1\.\d+/, /damped means/, /test|ratings/, /ndcg@20 +0\.\d+/],
  'docs/retraining.md': [/test RMSE +1\.\d+/, /^$/, /Updated by SGD/, /"rank": 10/],
  'docs/embedding.md': [/^iteration 10\n48 [01]\.\d+\n49 [45]\.\d+\n$/, /^26397 26397\n26397\n$/],
  'docs/sizing.md': [/memory +host 2\.1 GiB, gpu:0 2\.0 GiB/],
  'docs/reports.md': [/test RMSE +1\.\d+/],
  'docs/attributes.md': [
    /^\[ 'p36', 'p38' \]\n41 \[ \{ item: 'p\d?[02468]', similarity: [01]/,
    /items +10,506 \(497 without ratings, by their attributes\)/,
    /26 │ +1 │ +\d+ │/,
    /26 │ +1 │ +\d+ │/,
    /train +\d[\d,]+ rows/,
    /without ratings, by their attributes/,
    /metric +model +95 % +warm +cold +popularity/,
    /items +10,506, 0 of them new/,
    /│ because of +│ +share │\n[^]*genre = Drama │/,
  ],
  'docs/prepare-data.md': [/kind[^]*high[^]*\n16\d{3}\n$/],
  'docs/group-join-sort.md': [
    /^null 1 60 \[ 10 \]\n1 2 165 \[ 10, 11 \]\n2 1 null \[ 10 \]\n3\n$/,
    /^2\n\[ \{ user: 1, item: 10, page: 'home' \} \]\n3\n$/,
    /^\[\n {2}\{ user: 1, item: 10, title: 'Heat' \},\n {2}\{ user: 1, item: 12, title: 'Alien' \},\n {2}\{ user: 2, item: 99, title: null \}\n\]\n\[ \{ user: 2, item: 99, stars: 3 \} \]\n$/,
    /^\[\n( {2}\{ user: \d+, rating: 10, timestamp: 13780\d+n \},?\n){2}\]\n$/,
    /^\[\n {2}\{ user: 1, item: 1853728, n: 1n \},\n {2}\{ user: 1, item: 1074638, n: 2n \},\n {2}\{ user: 2, item: 104257, n: 1n \}\n\]\n$/,
    /^The Shawshank Redemption \(1994\) 9\.45\n[^]*Physical plan\n {2}left input of the join:\n[^]* {2}exchange by hash of item [^]*tasks over the parts, by 2 threads: join > top-rows\n/,
  ],
  'docs/coming-from.md': [/^\d\.\d+\n$/],
  'docs/folders.md': [
    /^genre=Drama genre=Sci-Fi%2FHorror genre=__HIVE_DEFAULT_PARTITION__\n\[ \{ film: 1, rating: 4\.5, genre: 'Drama', year: 1999 \} \]\nreads 1 of 3 folders: names exclude the others\n$/,
  ],
};

it('the pages have as many programs and command lines as are expected here', () => {
  const found = Object.keys(outputs).map((page) => [
    page,
    stepsOf(readFileSync(join(root, page), 'utf8')).length,
  ]);
  expect(found).toEqual(Object.entries(outputs).map(([page, patterns]) => [page, patterns.length]));
});

describe.each(Object.entries(outputs).filter(([page]) => runs(page)))(
  `%s on Node ${node.version}`,
  (page, patterns) => {
    // A reader's folder: the examples are there, and the package is installed.
    const reader = mkdtempSync(join(tmpdir(), 'factorflow-reader-'));
    afterAll(() => rmSync(reader, { recursive: true, force: true }));
    mkdirSync(join(reader, 'node_modules'));
    mkdirSync(join(reader, 'build'));
    symlinkSync(folder, join(reader, 'examples'));
    symlinkSync(root, join(reader, 'node_modules/factorflow'));
    symlinkSync(join(root, 'node_modules/apache-arrow'), join(reader, 'node_modules/apache-arrow'));

    it('has programs and command lines that run, one after the other', async () => {
      const steps = stepsOf(readFileSync(join(root, page), 'utf8'));
      for (const [at, { line, program }] of steps.entries()) {
        let ended: Promise<{ readonly stdout: string }>;
        if (program === undefined)
          ended = run(
            'sh',
            [
              '-c',
              `factorflow() { "${node.path}" "${join(root, 'dist/programs/cli/main.js')}" "$@"; }; ${line}`,
            ],
            { cwd: reader },
          );
        else {
          writeFileSync(join(reader, 'program.mjs'), program);
          ended = run(node.path, ['program.mjs'], { cwd: reader });
        }
        expect((await ended).stdout, line ?? program).toMatch(patterns[at]);
      }
    });
  },
);

/**
 * Programs in blocks of TypeScript, which have no types and so are JavaScript, and indented lines of the
 * command or of printf.
 */
function stepsOf(text: string): { readonly line?: string; readonly program?: string }[] {
  const steps = text.matchAll(
    /^```ts\n(?<program>.*?)^```|^ {4}(?:npx )?(?<line>(?:factorflow|printf) [^\n]*)$/gms,
  );
  return Array.from(steps, ({ groups }) => ({ program: groups?.program, line: groups?.line }));
}
