import { copyFileSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { factorflow as runCli } from './run-cli.ts';
import { path, ratings } from './reported-training.ts';

describe('--report of other commands', () => {
  it('holds no control characters', async () => {
    const odd = path('odd \u001b[31m\u0001\u0085.csv');
    copyFileSync(ratings, odd);
    expect(
      (
        await runCli(
          'evaluate',
          path('model'),
          odd,
          '--device',
          'cpu',
          '--workers',
          '1',
          '--report',
          path('odd.html'),
          '--quiet',
        )
      ).code,
    ).toBe(0);
    const text = readFileSync(path('odd.html'), 'utf8');
    expect(text).toContain('odd \ufffd[31m\ufffd\ufffd.csv');
    expect(text).not.toMatch(/(?![\n\t])\p{Cc}/u);
  });

  it('shows the plan of counts as a graph', async () => {
    const { code, stdout } = await runCli(
      'plan',
      '--users',
      '1000',
      '--items',
      '500',
      '--ratings',
      '20000',
      '--rank',
      '8',
      '--device',
      'cpu',
      '--report',
      path('plan.html'),
    );
    expect(code).toBe(0);
    expect(stdout).toContain('Physical plan');
    const text = readFileSync(path('plan.html'), 'utf8');
    expect(text.match(/<g class="stage /g)).toHaveLength(12);
    expect(text.match(/class="edge back"/g)?.length).toBeGreaterThan(0);
  });

  it('shows errors and rankings of a model', async () => {
    const errors = await runCli(
      'evaluate',
      path('model'),
      ratings,
      '--device',
      'cpu',
      '--workers',
      '1',
      '--report',
      path('errors.html'),
      '--quiet',
    );
    const ranking = await runCli(
      'evaluate',
      path('model'),
      ratings,
      '--ranking',
      '--device',
      'cpu',
      '--workers',
      '1',
      '--report',
      path('ranking.html'),
      '--quiet',
    );
    expect([errors.code, ranking.code]).toEqual([0, 0]);
    expect(readFileSync(path('errors.html'), 'utf8')).toMatch(
      /Calibration[\s\S]*Items by their number of ratings/,
    );
    expect(readFileSync(path('ranking.html'), 'utf8')).toMatch(/Ranking metrics[\s\S]*95 % interval/);
  });
});
