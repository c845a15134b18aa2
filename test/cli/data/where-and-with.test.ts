/** --where and --with: the rows that a command takes, and columns computed from others. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { argv, factorflow, fails, json, quick, refusals } from '../run-cli.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const [plays, model] = [path('plays.csv'), path('model')];
const rows = Array.from({ length: 400 }, (_, i) => [i % 20, (i * i + i) % 31, 1 + (i % 9)]);
const many = rows.filter(([, , count]) => count >= 4);
const computed = ['--with', 'rating = log1p(plays)', '--where', 'plays >= 4'];

beforeAll(async () => {
  writeFileSync(plays, `user,item,plays\n${rows.map((row) => row.join(',')).join('\n')}\n`);
  await json('train', plays, ...computed, ...quick, '--model-dir', model);
});

const factors = (name: string) => readFileSync(join(name, 'itemFactors/part-00000.parquet'));

const rowsOf = async (file: string) => {
  const session = await cpuSession({ workers: 1 });
  return await (await session.read.any(file)).toArray();
};

describe('--where and --with', () => {
  it('choose and compute what convert writes; a later column may use an earlier one', async () => {
    const output = path('converted.parquet');
    await json('convert', plays, output, ...computed, '--with', 'double = rating * 2');
    const written = await rowsOf(output);
    expect(written).toHaveLength(many.length);
    for (const [i, row] of written.entries()) {
      expect([row.user, row.item, row.plays]).toEqual(many[i]);
      expect(row.rating).toBeCloseTo(Math.log1p(many[i][2]), 12);
      expect(row.double).toBe(2 * Number(row.rating));
    }
  });

  it('give train the ratings that a file of the same rows has', async () => {
    await json('convert', plays, path('same.parquet'), ...computed);
    await json('train', path('same.parquet'), ...quick, '--model-dir', path('same'));
    expect(factors(model).equals(factors(path('same')))).toBe(true);
  });

  it('are in what inspect counts, also where the file itself has no ratings', async () => {
    const found = await json('inspect', plays, ...computed);
    expect(found).toMatchObject({
      names: { user: 'user', item: 'item', rating: 'rating' },
      ratings: many.length,
    });
    expect(await json('inspect', plays, '--where', 'plays >= 4', '--rating-col', 'plays')).toMatchObject({
      ratings: many.length,
    });
  });

  it('are in both parts of split', async () => {
    const parts = path('parts');
    await json(
      ...argv`split ${plays} --output ${parts} --where ${'plays >= 4'} --with ${'rating = plays'}
      --test-fraction 0.25`,
    );
    const lengths = await Promise.all(
      ['train', 'test'].map(async (name) => (await rowsOf(join(parts, name))).length),
    );
    expect(lengths[0] + lengths[1]).toBe(many.length);
  });

  it('choose the test of evaluate, and leave exclusions and candidates whole', async () => {
    const rated = ['--with', 'rating = plays', '--rating-col', 'rating'];
    const one = await json('evaluate', model, plays, ...rated, '--where', 'user = 3');
    expect(one).toMatchObject({ pairs: rows.filter(([user]) => user === 3).length });
    // A file without the column of the condition: the condition must not be applied to it.
    const bare = path('pairs.csv');
    writeFileSync(bare, `user,item\n${rows.map(([user, item]) => `${user},${item}`).join('\n')}\n`);
    const ranking = ['evaluate', model, plays, ...rated, '--where', 'plays >= 8', '--ranking', '--k', '5'];
    expect(await json(...ranking, '--candidates', bare)).toHaveProperty('users');
    const { code, stderr } = await factorflow(...ranking, '--exclude', bare, '--quiet');
    expect({ code, stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/no user is left to rank/),
    });
  });
});

describe('texts that are wrong', () => {
  it('exit with code 2 and one line', async () => {
    for (const [flags, message] of refusals`
      --where ${'plays >'} | plays >
      --where ${'playz > 3'} | no column "playz".*plays
      --where ${'plays + 1'} | must be true or false
      --with log1p(plays) | --with takes NAME = EXPRESSION, got "log1p\(plays\)"
      --with ${'plays == 3'} | --with takes NAME = EXPRESSION
      --with ${'rating = logp1(plays)'} | no function "logp1"
      --with ${"rating = plays + 'a'"} | does not fit
    `) {
      await fails(2, message, 'convert', plays, path('never.csv'), ...flags);
      await fails(2, message, 'train', plays, ...quick, '--model-dir', path('never'), ...flags);
    }
  });
});

describe('a configuration file', () => {
  it.each([
    ['a text', 'rating = log1p(plays)'],
    ['an array', ['half = plays / 2', 'rating = log1p(half * 2)']],
  ])('has where as a text and with as %s', async (_, computing) => {
    const [config, output] = [path('config.json'), path(`by-${typeof computing}`)];
    writeFileSync(config, JSON.stringify({ where: 'plays >= 4', with: computing }));
    await json('train', plays, '--config', config, ...quick, '--model-dir', output);
    expect(factors(output).equals(factors(model))).toBe(true);
  });

  it('with an entry that is no text is an error', async () => {
    const config = path('bad.json');
    writeFileSync(config, JSON.stringify({ with: [3] }));
    await fails(
      2,
      /takes NAME = EXPRESSION, got 3/,
      ...argv`train ${plays} --config ${config} --model-dir ${path('no')}`,
    );
  });
});
