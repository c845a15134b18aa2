import { execFileSync, spawn } from 'node:child_process';
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { argv, factorflow, json, objectOf, ratings, start, temporariesIn } from '../run-cli.ts';
import type { Outcome } from '../../support/start-process.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
/** Longer than a run may take to end after a signal, and far less than the waits last. */
const PATIENCE_MILLISECONDS = 120_000;

/** Connections are taken, and never answered. */
const asked: (() => void)[] = [];
const server = createServer(() => asked.splice(0).forEach((tell) => tell()));
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const silent = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ratings.parquet`;
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
const connected = () => new Promise<void>((resolve) => void asked.push(resolve));

/** Sends the signal and returns the outcome. A run that continues is killed, and the test fails. */
async function interrupted(
  { child, outcome }: ReturnType<typeof start>,
  signal: NodeJS.Signals,
): Promise<Outcome> {
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MILLISECONDS);
  const ended = await outcome;
  clearTimeout(timer);
  return ended;
}

function pipe(name: string): string {
  execFileSync('mkfifo', [path(name)]);
  return path(name);
}

describe('one signal ends a run that waits for its input', () => {
  it('a server that never answers', async () => {
    for (const [signal, ...args] of [
      ['SIGINT', 'inspect', silent],
      ['SIGTERM', 'convert', silent, path('out.parquet')],
      ['SIGINT', 'train', silent, '--model-dir', path('model'), '--device', 'cpu'],
    ] as const) {
      const [request, run] = [connected(), start([...args, '--quiet'])];
      await request;
      expect(await interrupted(run, signal)).toMatchObject({
        code: 130,
        signal: null,
        stderr: expect.stringMatching(/^factorflow: .*cancelled\n$/) as string,
      });
    }
    expect(temporariesIn(folder)).toEqual([]);
  });

  it('a pipe without a writer, one whose writer is silent, and open stdin', async () => {
    const args = (input: string, index: number) =>
      argv`convert ${input} ${path(`out-${index}.parquet`)} --from csv --json`;
    const unwritten = pipe('unwritten');
    const written = pipe('written.csv');
    const writer = spawn(process.execPath, [
      '-e',
      `const s = fs.createWriteStream(process.argv[1]); s.write('user,item,rating\\n1,2,3\\n'); setInterval(() => {}, 1000)`,
      written,
    ]);
    // Printed a second after the command listens for signals: it has begun to load its input then.
    const begun = `const wait = setInterval(() => {
        if (process.listenerCount('SIGTERM') === 0) return;
        clearInterval(wait);
        setTimeout(() => process.stderr.write('begun'), 1000).unref();
      }, 50).unref();`;
    const traced = { nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(begun)}`] };
    const runs = [unwritten, written, '-'].map((input, index) =>
      start(args(input, index), input === '-' ? { ...traced, stdin: 'pipe' } : traced),
    );
    await Promise.all(runs.map((run) => run.stderrMatches(/begun/)));
    for (const [at, run] of runs.entries()) {
      const { code, stdout } = await interrupted(run, at === 0 ? 'SIGINT' : 'SIGTERM');
      expect(objectOf(stdout)).toMatchObject({ command: 'convert', error: { exitCode: 130 } });
      expect(code).toBe(130);
    }
    writer.kill();
    expect(temporariesIn(folder)).toEqual([]);
  });
});

describe('one signal ends a run whose output nobody reads', () => {
  it.each(['csv', 'arrow'])('%s', async (to) => {
    const whenFull = `setInterval(() => process.stdout.writableNeedDrain && process.stderr.write('full'), 300).unref();`;
    const run = start(['convert', ratings, '-', '--to', to, '--quiet'], {
      nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(whenFull)}`],
    });
    run.child.stdout?.pause();
    await run.stderrMatches(/full/);
    run.child.once('exit', () => run.child.stdout?.resume());
    expect(await interrupted(run, 'SIGTERM')).toMatchObject({ code: 130, signal: null });
  });
});

describe('a pipe with a name', () => {
  const lines = `user,item,rating\n${Array.from({ length: 30_000 }, (_, i) => `${i % 999},${i % 77},${(i % 10) / 2}\n`).join('')}`;

  it('is read as stdin is, once and whole', async () => {
    writeFileSync(path('whole.csv'), lines);
    await json('convert', path('whole.csv'), path('expected.ndjson'));
    const fifo = pipe('read.csv');
    const run = start(['convert', fifo, path('piped.ndjson'), '--json']);
    createWriteStream(fifo).end(lines);
    expect(await run.outcome).toMatchObject({ code: 0 });
    expect(readFileSync(path('piped.ndjson')).equals(readFileSync(path('expected.ndjson')))).toBe(true);
  });

  it('is refused where a file is needed, without a wait', async () => {
    const fifo = pipe('refused.parquet');
    for (const [code, text, ...args] of [
      [3, /is not a regular file, and Parquet is read from its end/, 'inspect', fifo],
      [3, /is not a regular file/, 'train', fifo, '--model-dir', path('model')],
      [
        2,
        /cannot be read together with files/,
        'convert',
        path('whole.csv'),
        fifo,
        path('two.csv'),
        '--from',
        'csv',
      ],
      [3, /the format is not known/, 'convert', pipe('nameless'), path('two.csv')],
    ] as const) {
      const ended = await factorflow(...args, '--quiet');
      expect(ended.stderr).toMatch(text);
      expect(ended.code).toBe(code);
    }
  });
});
