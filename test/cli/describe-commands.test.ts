import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { argv, factorflow, json, quick, ratings, writeParquet } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { noEvents } from '../../engine/events.ts';
import { warnOnce } from '../../cli/run-cli.ts';

const folder = temporaryFolder();

describe('inspect', () => {
  it('prints files, columns, degrees and values', async () => {
    const report = await json('inspect', ratings);
    expect(report).toMatchObject({
      command: 'inspect',
      rows: 100_000,
      files: 1,
      users: 16_554,
      items: 10_506,
      ratings: 100_000,
      badRows: 0,
      warnings: [],
    });
    expect(report.density).toBeCloseTo(100_000 / (16_554 * 10_506), 12);
    expect(report.rating).toMatchObject({ least: 0, most: 10 });
    expect(report.userDegrees).toMatchObject({ least: 1, median: 2 });
    expect((report.columns as object[])[0]).toMatchObject({ name: 'user', type: 'Int32', codecs: ['zstd'] });
  });

  it('prints a table for people', async () => {
    const { stdout } = await factorflow('inspect', ratings, '--quiet');
    for (const part of [
      '100,000 rows in 1 file',
      'timestamp',
      'Int64',
      'zstd',
      'users',
      '16,554',
      'standard deviation',
    ])
      expect(stdout).toContain(part);
  });

  it('prints the columns where the default ones are missing, and counts bad rows', async () => {
    const file = await writeParquet(
      join(folder, 'odd.parquet'),
      "SELECT 1 AS who, 'x' AS what, 'NaN'::FLOAT AS stars UNION ALL SELECT 2, 'y', 4",
    );
    const report = await json('inspect', file);
    expect(report).toMatchObject({
      rows: 2,
      columns: [{ name: 'who' }, { name: 'what', type: 'Utf8' }, { name: 'stars' }],
    });
    expect(report).not.toHaveProperty('users');
    const named = await json(...argv`inspect ${file} --user-col who --item-col what --rating-col stars`);
    expect(named).toMatchObject({ ratings: 1, badRows: 1, warnings: [{ code: 'one-rating' }] });
  });

  it('warns of ratings that look like something else, in the flags of train', async () => {
    const file = await writeParquet(
      join(folder, 'clicks.parquet'),
      'SELECT (i % 40)::INTEGER AS "user", (i % 30)::INTEGER AS item, 1::FLOAT AS rating FROM range(900) AS _(i)',
    );
    expect((await json('inspect', file)).warnings).toEqual([
      {
        code: 'equal-ratings',
        text: expect.stringMatching(/all 900 ratings are 1: .*--implicit; check --rating-col/),
      },
    ]);
    const { stdout } = await factorflow('inspect', file, '--quiet');
    expect(stdout).toMatch(/\nwarning: all 900 ratings are 1: /);
  });
});

describe('plan', () => {
  it('is JSON-able data or text, without training', async () => {
    const report = await json('plan', ratings, '--rank', '16', '--test-fraction', '0.1');
    expect(report).toMatchObject({
      command: 'plan',
      analyzed: false,
      plan: { planVersion: 6, algorithm: 'als', problem: { 'rank f': '16 and biases' } },
    });
    const { stdout } = await factorflow('plan', ratings, '--quiet');
    expect(stdout).toMatch(/^Physical plan: als\n/);
  });

  it('runs with --analyze and saves nothing, though it takes the flags of train', async () => {
    const model = join(folder, 'never');
    const report = await json('plan', ratings, '--analyze', ...quick, '--model-dir', model);
    const { measured } = report.plan as PhysicalPlan;
    expect(measured?.['update-users'].runs).toBeGreaterThan(0);
    expect(existsSync(model)).toBe(false);
  });

  it('needs no data, and says when the problem does not fit', async () => {
    const shape = ['plan', '--users', '480189', '--items', '17770', '--ratings', '99072112', '--rank', '100'];
    expect(await json(...shape, '--memory-budget', '64GiB')).toMatchObject({
      plan: { problem: { 'users m': 480_189 } },
    });
    const tight = await factorflow(...shape, '--memory-budget', '512MiB');
    expect(tight.code).toBe(4);
    expect(tight.stderr).toMatch(
      /^factorflow: plan: the run needs about .* but the memory budget is 512\.0 MiB/,
    );
  });
});

describe('generate', () => {
  it('writes train and test parts with a description', async () => {
    const output = join(folder, 'generated');
    const report = await json(
      ...argv`generate --preset movielens20m --scale 0.001 --seed 5 --output ${output}`,
    );
    expect(report).toMatchObject({
      command: 'generate',
      preset: 'movielens20m',
      scale: 0.001,
      seed: 5,
      users: 138,
      output,
    });
    expect(readdirSync(output).sort()).toEqual(['dataset.json', 'test', 'train']);
    expect(await json('inspect', join(output, 'train'))).toMatchObject({ ratings: report.train, users: 138 });
  });
});

describe('doctor', () => {
  it('describes the machine, with the reason for a missing adapter', async () => {
    const report = await json('doctor');
    expect(report).toMatchObject({
      command: 'doctor',
      versions: { node: process.versions.node, 'apache-arrow': expect.any(String) },
      cpu: { cores: expect.any(Number) },
    });
    expect(['simd', 'relaxed-simd']).toContain(report.webAssembly);
    const { adapter, advice } = report.webgpu as { adapter: object | null; advice: string | null };
    if (adapter === null) expect(advice).toMatch(/\w/);
    else expect(adapter).toMatchObject({ name: expect.any(String), backend: expect.any(String) });
  });
});

describe('warnings', () => {
  const likes = join(folder, 'likes.csv');
  const pairs = Array.from({ length: 600 }, (_, k) => `${k % 40},${(7 * k) % 30},1`);
  writeFileSync(likes, `user,item,rating\n${pairs.join('\n')}\n5,,1\n`);

  const fast = argv`--rank 2 --max-iter 1 --device cpu --workers 1 --on-bad-rows skip`;

  /** The warnings of a command, each with the number of times that it was printed. */
  async function warningsOf(...args: readonly string[]): Promise<Map<string, number>> {
    const { code, stderr, stdout } = await factorflow(...args);
    expect(code).toBe(0);
    const counts = new Map<string, number>();
    for (const [, text] of `${stderr}\n${stdout}`.matchAll(/^(?:factorflow: )?warning: (.*)$/gm))
      counts.set(text, (counts.get(text) ?? 0) + 1);
    return counts;
  }

  describe('warnings', () => {
    it('are passed on once for each code and text', () => {
      const seen: unknown[] = [];
      const events = warnOnce((event) => seen.push(event));
      const warning = { type: 'warning', code: 'a', text: 'x' } as const;
      const note = { type: 'note', text: 'x' } as const;
      const others = [
        { ...warning, code: 'b' },
        { ...warning, text: 'y' },
        { type: 'warning', text: 'x' } as const,
      ];
      for (const event of [warning, warning, note, note, ...others, ...others]) events(event);
      expect(seen).toEqual([warning, note, note, ...others]);
      expect(() => warnOnce(noEvents)(note)).not.toThrow();
    });

    it.each<[string, string[]]>([
      [
        'train with a page',
        argv`train ${likes} --test-fraction 0.2 --model-dir ${join(folder, 'page')} --report
        ${join(folder, 'page.html')}`,
      ],
      ['tune', ['tune', likes, '--model-dir', join(folder, 'tuned'), '--try', 'reg-param=0.01,0.1,1']],
      ['plan --analyze', ['plan', likes, '--analyze', '--test-fraction', '0.2']],
    ])('appear once in %s', async (_, args) => {
      const found = await warningsOf(...args, ...fast);
      expect([...found.keys()].some((text) => /left out \d bad row/.test(text))).toBe(true);
      expect([...found.keys()].some((text) => /ratings are 1: /.test(text))).toBe(true);
      expect([...found.values()].filter((times) => times !== 1)).toEqual([]);
    });

    it('that a model is no better than means appears once', async () => {
      const found = await warningsOf(
        ...argv`train ${ratings} --test-fraction 0.1 --rank 4 --max-iter 1 --reg-param 0 --no-biases
      --device cpu --model-dir ${join(folder, 'bad')} --quiet`,
      );
      expect([...found]).toEqual([[expect.stringMatching(/test RMSE, .* is no better than/), 1]]);
    });
  });
});
