import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { factorflow, json, quick, ratings, start, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();
const model = join(folder, 'model');

interface Reported {
  readonly profile: {
    readonly seconds: number;
    readonly phases: readonly { readonly phase: string; readonly seconds: number; readonly times: number }[];
  };
}

const phasesOf = ({ profile }: Reported) => profile.phases.map(({ phase }) => phase);

describe('--profile', () => {
  it('tells where the time of each command went, in phases that add up', async () => {
    const reports: Record<string, Reported> = {};
    const run = async (command: string, ...args: string[]) => {
      reports[command] = (await json(command, ...args, '--profile')) as unknown as Reported;
    };
    await run('train', ratings, ...quick, '--test-fraction', '0.1', '--model-dir', model);
    await run('recommend', model, '--output', join(folder, 'lists'), '--exclude', ratings);
    await run('predict', model, ratings, '--output', join(folder, 'predictions'));
    await run('evaluate', model, ratings);
    await run('convert', ratings, join(folder, 'ratings.csv'));
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
    const written = await factorflow('convert', ratings, join(folder, 'again.csv'), '--profile');
    expect(written.stdout).toMatch(/rows +100,000[^]*phase +│ +time[^]*│ read [^]*│ in all /);
    // --quiet hides the summary, but not the table that was asked for.
    const quiet = await factorflow('convert', ratings, join(folder, 'quiet.csv'), '--profile', '--quiet');
    expect(quiet.stdout).toMatch(/phase +│ +time[^]*│ in all /);
    expect(quiet.stdout).not.toContain('100,000');
    expect(quiet.stderr).toBe('');
    const piped = await start(['convert', ratings, '-', '--to', 'csv', '--profile', '--quiet']).outcome;
    expect(piped.stdout).not.toContain('phase');
    expect(piped.stderr).toMatch(/phase +│ +time[^]*│ in all /);
  });
});
