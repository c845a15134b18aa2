import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, stagesOf } from '../../engine/plan/physical-plan.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings } from '../support/ratings.ts';
import { checkTrace } from '../support/traces.ts';
import { argv, factorflow, json, quick, ratings, fewRatings, start } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const folder = temporaryFolder();
const few = await fewRatings();
const model = join(folder, 'model');
const seen = (file: string) => checkTrace(readFileSync(file, 'utf8'));

describe('--trace', () => {
  it('shows every stage of the plan that ran, at its place, with rows and bytes', async () => {
    for (const [algorithm, ...flags] of [
      ['als', '--implicit'],
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
          args?.kernel === (algorithm === 'als' ? 'update-implicit' : 'sgd-block'),
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
    await json('convert', few, join(folder, 'ratings.csv'), '--trace', file);
    expect(seen(file)).toMatchObject({ other: { command: 'convert' } });
    const failed = await factorflow(
      ...argv`train ${join(folder, 'ratings.csv')} --user-col nobody --model-dir
      ${join(folder, 'none')} --trace ${file}`,
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
      ...argv`train ${few} ${quick} --model-dir ${model} --force --device gpu --quiet --trace ${file}`,
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

describe('the profile of a command', () => {
  interface Reported {
    readonly profile: {
      readonly seconds: number;
      readonly phases: readonly {
        readonly phase: string;
        readonly seconds: number;
        readonly times: number;
      }[];
    };
  }

  const phasesOf = ({ profile }: Reported) => profile.phases.map(({ phase }) => phase);

  const profiled = join(folder, 'profiled');

  describe('--profile', () => {
    it('tells where the time of each command went, in phases that add up', async () => {
      const reports: Record<string, Reported> = {};
      const run = async (command: string, ...args: string[]) => {
        reports[command] = (await json(command, ...args, '--profile')) as unknown as Reported;
      };
      await run('train', few, ...quick, '--test-fraction', '0.1', '--model-dir', profiled);
      await run('recommend', profiled, '--output', join(folder, 'profiled-lists'), '--exclude', few);
      await run('predict', profiled, few, '--output', join(folder, 'predictions'));
      await run('evaluate', profiled, few);
      await run('convert', few, join(folder, 'profiled.csv'));
      for (const { profile } of Object.values(reports)) {
        expect(profile.phases.reduce((sum, { seconds }) => sum + seconds, 0)).toBeCloseTo(profile.seconds, 6);
        expect(profile.phases.map(({ phase }) => phase)[0]).toBe('start-up');
        expect(profile.phases.map(({ phase }) => phase).at(-1)).toBe('unaccounted');
      }
      expect(phasesOf(reports.train)).toEqual(
        expect.arrayContaining([
          'open devices',
          'open files',
          'read',
          'number',
          'sort',
          'look at ratings',
          'plan',
          'tune',
          'start',
          'iterations',
          'measure',
          'save',
          'end',
        ]),
      );
      expect(phasesOf(reports.recommend)).toEqual(
        expect.arrayContaining(['load model', 'read', 'sort', 'recommend', 'write']),
      );
      expect(phasesOf(reports.predict)).toEqual(
        expect.arrayContaining(['load model', 'read', 'predict', 'write']),
      );
      expect(phasesOf(reports.evaluate)).toEqual(expect.arrayContaining(['load model', 'read', 'evaluate']));
      expect(phasesOf(reports.convert)).toEqual(expect.arrayContaining(['read', 'write']));
    });

    it('prints a table behind the result, on stderr where the output takes stdout', async () => {
      const written = await factorflow('convert', few, join(folder, 'again.csv'), '--profile');
      expect(written.stdout).toMatch(/rows +2,000[^]*phase +│ +time[^]*│ read [^]*│ in all /);
      // --quiet hides the summary, but not the table that was asked for.
      const quiet = await factorflow('convert', few, join(folder, 'quiet.csv'), '--profile', '--quiet');
      expect(quiet.stdout).toMatch(/phase +│ +time[^]*│ in all /);
      expect(quiet.stdout).not.toContain('2,000');
      expect(quiet.stderr).toBe('');
      const piped = await start(['convert', few, '-', '--to', 'csv', '--profile', '--quiet']).outcome;
      expect(piped.stdout).not.toContain('phase');
      expect(piped.stderr).toMatch(/phase +│ +time[^]*│ in all /);
    });
  });
});

describe('the peak of memory', () => {
  const MiB = 2 ** 20;
  const file = fileURLToPath(new URL('../../cli/report/training-report.ts', import.meta.url));

  /** The peak of a process that has touched `mebibytes` of memory. */
  function peakOf(mebibytes: number): number {
    const code = `
    import { peakMemoryBytes } from ${JSON.stringify(file)};
    Buffer.alloc(${mebibytes} * 2 ** 20, 1);
    console.log(peakMemoryBytes());`;
    return Number(
      spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).stdout,
    );
  }

  it('has the memory that the process has given back', () => {
    expect(peakOf(300)).toBeGreaterThan(300 * MiB);
  });

  it.runIf(process.platform === 'linux')('is without the memory of the process that started it', () => {
    const held = Buffer.alloc(500 * MiB, 1);
    const peak = peakOf(0);
    expect(peak).toBeGreaterThan(20 * MiB);
    expect(peak).toBeLessThan(held.length / 2);
  });
});
