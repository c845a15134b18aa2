import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, stagesOf } from '../../engine/plan/physical-plan.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings } from '../support/ratings.ts';
import { checkTrace } from '../support/traces.ts';
import { factorflow, json, quick, ratings, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();
const model = join(folder, 'model');
const seen = (file: string) => checkTrace(readFileSync(file, 'utf8'));

describe('--trace', () => {
  it('shows every stage of the plan that ran, at its place, with rows and bytes', async () => {
    for (const [algorithm, ...flags] of [
      ['als', '--implicit'],
      ['als', '--test-fraction', '0.1'],
      ['sgd', '--test-fraction', '0.1'],
    ]) {
      const file = join(folder, `${algorithm}${flags[0]}.json`);
      const training = [
        ratings,
        ...quick,
        '--algorithm',
        algorithm,
        ...flags,
        '--device',
        'cpu',
        '--workers',
        '2',
      ];
      const { plan } = (await json('plan', ...training)) as unknown as { plan: PhysicalPlan };
      await json('train', ...training, '--model-dir', model, '--force', '--trace', file);
      const { spans, rows, other } = seen(file);
      const names = new Set(spans.map(({ name }) => name));
      expect(
        stagesOf(plan)
          .map(({ stage }) => stage.name)
          .filter((name) => !names.has(name)),
      ).toEqual([]);
      for (const row of ['host phases', 'files stages', 'files writes', 'cpu thread 1', 'cpu thread 2'])
        expect(rows).toContain(row);
      const updates = spans.filter(
        ({ row, args }) =>
          row.startsWith('thread') &&
          args?.kernel ===
            (algorithm === 'als' ? (flags[0] === '--implicit' ? 'update-implicit' : 'update') : 'sgd-block'),
      );
      expect(updates.length).toBeGreaterThan(0);
      for (const { args } of updates)
        expect(args).toMatchObject({ rows: expect.any(Number), bytesUp: expect.any(Number) });
      expect(other).toMatchObject({ command: 'train', spans: spans.length, dropped: {} });
    }
  });

  it('is written by the other commands, replaces an earlier trace, and ends with the error of a command that fails', async () => {
    const file = join(folder, 'again.json');
    await json('recommend', model, '--output', join(folder, 'lists'), '--trace', file);
    expect(seen(file).spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['load model', 'recommend', 'write']),
    );
    await json('convert', ratings, join(folder, 'ratings.csv'), '--trace', file);
    expect(seen(file)).toMatchObject({ other: { command: 'convert' } });
    const failed = await factorflow(
      'train',
      join(folder, 'ratings.csv'),
      '--user-col',
      'nobody',
      '--model-dir',
      join(folder, 'none'),
      '--trace',
      file,
    );
    expect(failed.code).toBe(3);
    expect(seen(file).spans.map(({ name }) => name)).toContain('open files');
  });

  it('refuses a file that is no trace, an input, a place inside the model, and stdout', async () => {
    const other = join(folder, 'other.json');
    writeFileSync(other, '{"displayTimeUnit":"s"}');
    const run = async (trace: string) =>
      (await factorflow('train', ratings, '--model-dir', join(folder, 'none'), '--trace', trace)).stderr;
    expect(await run(other)).toContain('the output exists already');
    expect(await run(ratings)).toContain('--trace is an input too');
    expect(await run(join(folder, 'none', 'trace.json'))).toContain('--trace is inside --model-dir');
    expect(await run('-')).toContain('a trace must be written to a file, got "-"');
    expect(await run(join(folder, 'other.json', 'trace.json'))).toContain(
      'other.json is a file, not a folder',
    );
    expect(existsSync(join(folder, 'none'))).toBe(false);
    expect(readFileSync(other, 'utf8')).toBe('{"displayTimeUnit":"s"}');
  });

  it.skipIf(noGpu)('shows uploads, compiling and tasks of a GPU on a timeline of its own', async () => {
    const [file, few] = [join(folder, 'gpu.json'), join(folder, 'few.csv')];
    writeFileSync(
      few,
      `user,item,rating\n${randomRatings(62, 40, 30, 600)
        .map(({ user, item, rating }) => `${user},${item},${rating}`)
        .join('\n')}\n`,
    );
    const { code } = await factorflow(
      'train',
      few,
      ...quick,
      '--model-dir',
      model,
      '--force',
      '--device',
      'gpu',
      '--quiet',
      '--trace',
      file,
    );
    expect(code).toBe(0);
    const { rows, spans } = seen(file);
    for (const row of ['tasks', 'uploads', 'compiling', 'readbacks', 'fetches'])
      expect(rows).toContain(`gpu:0 ${row}`);
    expect(
      spans.filter(({ place, name }) => place === 'gpu:0' && name === 'update-items').length,
    ).toBeGreaterThanOrEqual(2);
    expect(spans.find(({ row }) => row === 'uploads')?.args?.bytes).toBeGreaterThan(0);
  });
});
