/**
 * Signals in every phase of the commands. A module that is loaded first sends them to its own process at an
 * event of the phase, so that no test depends on time.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { byValues } from '../support/deep.ts';
import { sendRange } from '../support/send-range.ts';
import { argv, factorflow, start, ratings, temporariesIn } from './run-cli.ts';
import type { Outcome, Started } from '../support/start-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const input = (format: string) => join(folder, `ratings.${format}`);
const model = join(folder, 'model');
const loader = resolve(import.meta.dirname, '../support/damage/signal-at.mjs');
const small = ['--rank', '4', '--max-iter', '2', '--device', 'cpu', '--workers', '1'];

/** The request that the server does not answer, counted from 1, and the function that is called then. */
let [requests, held, onHeld] = [0, 0, () => {}];
const server = createServer((request, reply) => {
  if (++requests === held) onHeld();
  else sendRange(request, reply, readFileSync(join(folder, request.url ?? '')), { ETag: '"1"' });
});
await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

beforeAll(async () => {
  const rows = Array.from({ length: 3000 }, (_, k) => [`u${(k * 7919) % 211}`, `i${k % 61}`, (k % 5) + 1]);
  writeFileSync(input('csv'), ['user,item,rating', ...rows.map((row) => row.join(','))].join('\n'));
  const objects = rows.map(([user, item, rating]) => JSON.stringify({ user, item, rating }));
  writeFileSync(input('ndjson'), objects.join('\n'));
  for (const args of [
    ['convert', input('csv'), input('parquet')],
    ['train', input('csv'), ...small, '--model-dir', model],
  ])
    expect(await factorflow(...args, '--quiet')).toMatchObject({ code: 0, stderr: '' });
});

/** The arguments of a command that reads `source` and writes into `out`. */
const commands: Readonly<Record<string, (source: string, out: string) => string[]>> = {
  train: (source, out) => argv`train ${source} --test-fraction 0.1 --model-dir ${out}/model
    --checkpoint-dir ${out}/checkpoints --checkpoint-interval 1 ${small}`,
  tune: (source, out) => ['tune', source, ...small, '--trials', '2', '--model-dir', join(out, 'model')],
  convert: (source, out) => argv`convert ${source}
    ${join(out, source.endsWith('.parquet') ? 'rows.csv' : 'rows.parquet')}`,
  inspect: (source) => ['inspect', source],
  'inspect a model': () => ['inspect', model],
  recommend: (_, out) => ['recommend', model, '-n', '3', '--output', join(out, 'lists.csv')],
  evaluate: (source) => ['evaluate', model, source],
  rank: (source) => ['evaluate', model, source, '--ranking'],
};

let runs = 0;

/** Starts a command in a folder of its own; `env`: see signal-at.mjs. */
function begin(command: string, source: string, env: NodeJS.ProcessEnv): Started & { readonly out: string } {
  const out = join(folder, `out-${runs++}`);
  mkdirSync(out);
  const nodeArgs = ['--import', loader];
  return { ...start(commands[command](source, out), { nodeArgs, env }), out };
}

/** Exit code 130, and nothing but whole checkpoints and the file that `tune` continues from. */
async function expectCancelled({ outcome, out }: ReturnType<typeof begin>): Promise<Outcome> {
  const ended = await outcome;
  const { code, signal, stderr } = ended;
  expect(stderr).not.toContain('    at ');
  expect({ code, signal, stderr }).toEqual({ code: 130, signal: null, stderr });
  const left = readdirSync(out, { recursive: true, encoding: 'utf8' });
  expect(
    left.filter((name) => !/^(checkpoints(\/checkpoint-.*)?|model\.trials\.ndjson)$/.test(name)),
  ).toEqual([]);
  return ended;
}

/** Phase, command, format, and the event at which the signal comes. */
const places = [
  ['opening', 'train', 'parquet', 'openSync .*/ratings.parquet'],
  ['opening', 'tune', 'ndjson', 'openSync .*/ratings.ndjson'],
  ['opening', 'convert', 'csv', 'openSync .*/ratings.csv'],
  ['opening', 'inspect a model', '', 'call stat .*/model/metadata'],
  ['opening', 'recommend', '', 'call mkdir .*/.lists.csv.tmp-'],
  ['reading rows', 'train', 'csv', 'line read: started'],
  ['reading rows', 'convert', 'ndjson', 'line write: started'],
  ['reading rows', 'inspect', 'csv', 'line profile: started'],
  ['numbering ids', 'train', 'ndjson', 'task number-keys'],
  ['numbering ids', 'tune', 'parquet', 'task merge-ids'],
  ['sorting', 'train', 'parquet', 'task sort-bands'],
  ['sorting', 'rank', 'ndjson', 'task count-pairs'],
  ['iterations', 'train', 'csv', 'line iteration 1/'],
  ['iterations', 'tune', 'ndjson', 'task update'],
  ['evaluation', 'tune', 'csv', 'line trial 1 of'],
  ['evaluation', 'evaluate', 'csv', 'line evaluate: started'],
  ['evaluation', 'rank', 'parquet', 'task rank-listed'],
  ['checkpoint', 'train', 'parquet', 'call open .*/.checkpoint-.*SHA256SUMS'],
  ['writing', 'train', 'csv', 'task write-factors'],
  ['writing', 'tune', 'parquet', 'call mkdir .*/itemMeans'],
  ['writing', 'convert', 'csv', 'call open .*/.rows.parquet.tmp-'],
  ['writing', 'recommend', '', 'task top-n'],
] as const;

/** A place of each phase, and one of each command; all of them in `npm run test:deep`. */
const samples = byValues(places, ([phase, command]) => ({ phase, command }));

/** Calls of a file system that does not answer: a run in one hears of a signal, and cannot end in order. */
const hanging = [
  ['opening', 'train', 'parquet', 'call stat .*/ratings.parquet'],
  ['checkpoint', 'train', 'ndjson', 'call mkdir .*/.checkpoint-'],
  ['writing', 'tune', 'csv', 'call mkdir .*/itemFactors'],
  ['writing', 'convert', 'csv', 'call open .*/.rows.parquet.tmp-'],
] as const;

/** Phase, command, format, and the number of the request that the server does not answer. */
const unanswered = [
  ['opening', 'train', 'parquet', 1],
  ['reading rows', 'tune', 'parquet', 2],
  ['reading rows', 'convert', 'csv', 2],
  ['reading rows', 'inspect', 'ndjson', 4],
] as const;

describe.skipIf(process.platform === 'win32')('a signal', () => {
  it.each(samples.map((place, index) => [index % 2 ? 'SIGINT' : 'SIGTERM', ...place] as const))(
    '%s while %s: %s %s',
    async (signal, _, command, format, at) => {
      const run = begin(command, input(format), { FACTORFLOW_SIGNAL_AT: at, FACTORFLOW_SIGNALS: signal });
      const { stderr } = await expectCancelled(run);
      expect(stderr).toMatch(new RegExp(`^signal at ${at}`, 'm'));
    },
  );

  it.each(
    byValues(unanswered, ([phase]) => ({ phase })).map(
      (place, index) => [index % 2 ? 'SIGINT' : 'SIGTERM', ...place] as const,
    ),
  )('%s while %s from a web server: %s %s', async (signal, _, command, format, request) => {
    [requests, held] = [0, request];
    const asked = new Promise<void>((done) => (onHeld = done));
    const run = begin(command, `${address}/ratings.${format}`, {});
    await asked;
    run.child.kill(signal);
    await expectCancelled(run);
  });
});

describe.skipIf(process.platform === 'win32')('a second signal', () => {
  it.each(byValues(hanging, ([phase]) => ({ phase })))(
    'ends a run that hangs while %s: %s %s',
    async (_, command, format, at) => {
      const run = begin(command, input(format), {
        FACTORFLOW_SIGNAL_AT: at,
        FACTORFLOW_SIGNALS: 'SIGINT',
        FACTORFLOW_HOLD: '1',
      });
      await run.stderrMatches(/stopping in order; once more stops at once/);
      run.child.kill('SIGTERM');
      await expectCancelled(run);
    },
  );

  it.each(['task update', 'line train: finished'])('ends a run at once at %s', async (at) => {
    const both = { FACTORFLOW_SIGNAL_AT: at, FACTORFLOW_SIGNALS: 'SIGINT,SIGTERM' };
    const { stderr } = await expectCancelled(begin('train', input('csv'), both));
    // A run that ends in order says that it was cancelled.
    expect(stderr).not.toContain('cancelled');
  });
});

describe.skipIf(process.platform === 'win32')('a main thread in work that cannot be cut', () => {
  it('does not keep the process after a signal', async () => {
    const block = `data:text/javascript,${encodeURIComponent(
      `process.on('SIGTERM', () => setTimeout(() => { process.stderr.write('blocked'); for (;;); }, 1));
       setInterval(() => process.listenerCount('SIGTERM') > 1 && process.stderr.write('ready'), 50).unref();`,
    )}`;
    const args = ['train', ratings, '--rank', '64', '--max-iter', '1000', '--model-dir', `${folder}/model`];
    const run = start([...args, '--device', 'cpu', '--quiet'], { nodeArgs: ['--import', block] });
    await run.stderrMatches(/ready/);
    run.child.kill('SIGTERM');
    await run.stderrMatches(/blocked/);
    expect(await run.outcome).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(temporariesIn(folder)).toEqual([]);
  });
});
