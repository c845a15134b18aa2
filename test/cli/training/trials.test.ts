import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, fails, objectOf, ratings, start, temporaryFolder } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const cpu = ['--device', 'cpu', '--workers', '1'];

interface Found {
  readonly number: number;
  readonly params: Readonly<Record<string, number>>;
  readonly value: number | null;
}

describe('the trials of tune', () => {
  it('goes on after Ctrl-C with the same table', async () => {
    const search = (model: string, ...more: readonly string[]) => [
      'tune',
      ratings,
      '--model-dir',
      path(model),
      '--try',
      'rank=2,4,6,8 max-iter=20',
      ...cpu,
      ...more,
    ];
    const { child, outcome, stderrMatches } = start(search('cut'));
    await stderrMatches(/trial 1 of 4, rank 2.*rmse/);
    child.kill('SIGINT');
    const cut = await outcome;
    expect(cut.code).toBe(130);
    expect(cut.stderr).toContain('--resume continues');
    const lines = readFileSync(path('cut.trials.ndjson'), 'utf8').trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(1);
    expect(existsSync(path('cut'))).toBe(false);
    await fails(2, /has the trials of an earlier search/, ...search('cut'));
    await fails(2, /trials of another search: seed/, ...search('cut', '--resume', '--seed', '1'));
    // A line that a kill cut off is left out.
    writeFileSync(path('cut.trials.ndjson'), `${lines.join('\n')}\n{"number":`);
    const [resumed, whole] = [
      await factorflow(...search('cut', '--resume', '--json', '--quiet')),
      await factorflow(...search('whole', '--json', '--quiet')),
    ];
    expect([resumed.code, whole.code]).toEqual([0, 0]);
    const values = (stdout: string) =>
      (objectOf(stdout) as unknown as { readonly trials: readonly Found[] }).trials.map(
        ({ params, value }) => [params, value],
      );
    expect(values(resumed.stdout)).toEqual(values(whole.stdout));
    expect(existsSync(path('cut.trials.ndjson'))).toBe(false);
  });

  it('tells where the trials are when the model cannot be saved, and goes on', async () => {
    const search = (...more: readonly string[]) => [
      'tune',
      ratings,
      '--model-dir',
      path('taken'),
      '--try',
      'rank=2,4,6,8 max-iter=20',
      ...cpu,
      ...more,
    ];
    const { outcome, stderrMatches } = start(search());
    await stderrMatches(/trial 1 of 4, rank 2.*rmse/);
    writeFileSync(path('taken'), 'a file of somebody else');
    const failed = await outcome;
    expect(failed.code).not.toBe(0);
    expect(failed.stderr).toMatch(
      /the trials that have ended are in \S*taken\.trials\.ndjson; the same command with --resume continues/,
    );
    rmSync(path('taken'));
    const resumed = await factorflow(...search('--resume'));
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain('4 trials of');
    expect(existsSync(path('taken.trials.ndjson'))).toBe(false);
  });

  it('replaces no file that has no trials, and no output by another', async () => {
    const search = (...more: readonly string[]) => [
      'tune',
      ratings,
      '--model-dir',
      path('guard'),
      '--try',
      'rank=2',
      '--max-iter',
      '1',
      ...more,
    ];
    writeFileSync(path('notes.txt'), 'notes');
    await fails(
      2,
      /is not a file of trials, and is not replaced/,
      ...search('--trials-file', path('notes.txt'), '--force'),
    );
    expect(readFileSync(path('notes.txt'), 'utf8')).toBe('notes');
    await fails(2, /--trials-file is an input too/, ...search('--trials-file', ratings, '--force'));
    await fails(
      2,
      /--model-dir and --trials-file are the same place|--trials-file and --model-dir are the same place/,
      ...search('--trials-file', path('guard')),
    );
    await fails(
      2,
      /--trials-file and --report are the same place|--report and --trials-file are the same place/,
      ...search('--trials-file', path('x.html'), '--report', path('x.html')),
    );
    await fails(2, /this is a device, and a regular file is needed/, ...search('--trials-file', '/dev/null'));
    expect(existsSync(path('guard'))).toBe(false);
  });

  it('goes on after two interruptions, and with no other columns or ratings', async () => {
    const source = path('columns.csv');
    writeFileSync(
      source,
      `user,item,rating\n${Array.from({ length: 400 }, (_, k) => `${k % 20},${(3 * k) % 17},${1 + (k % 5)}`).join('\n')}\n`,
    );
    const file = path('glued.ndjson');
    const search = (model: string, ...more: readonly string[]) => [
      'tune',
      source,
      '--model-dir',
      path(model),
      '--try',
      'rank=2,3,4',
      '--max-iter',
      '2',
      ...cpu,
      '--quiet',
      '--trials-file',
      file,
      ...more,
    ];
    expect((await factorflow(...search('glued-1'))).code).toBe(0);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    writeFileSync(file, `${lines.slice(0, 3).join('\n')}\n{"number":3,"params`);
    expect((await factorflow(...search('glued-2', '--resume'))).code).toBe(0);
    expect((await factorflow(...search('glued-3', '--resume'))).code).toBe(0);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(4);
    await fails(
      2,
      /trials of another search: params/,
      ...search('glued-4', '--resume', '--on-duplicates', 'sum').filter((word) => word !== '--quiet'),
    );
    writeFileSync(
      source,
      `user,item,rating\n${Array.from({ length: 500 }, (_, k) => `${k % 20},${(3 * k) % 17},${1 + (k % 5)}`).join('\n')}\n`,
    );
    await fails(
      2,
      /trials of another search: ratings/,
      ...search('glued-5', '--resume').filter((word) => word !== '--quiet'),
    );
  });
});
