/** Columns named by flags, or recognised by their names, through the commands. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, test } from 'vitest';
import { argv, factorflow, fails, json, quick } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const [known, odd, several] = ['known.csv', 'odd.csv', 'several.csv'].map((name) => join(folder, name));
const model = join(folder, 'model');
const rows = Array.from({ length: 300 }, (_, i) => [i % 17, (i * i) % 23, 1 + (i % 5), 1_600_000_000 + i]);

beforeAll(async () => {
  const text = (head: string, line: (row: number[]) => string) => `${head}\n${rows.map(line).join('\n')}\n`;
  writeFileSync(
    known,
    text('userId,movieId,stars,ts', (row) => row.join(',')),
  );
  writeFileSync(
    odd,
    text('time,how,what,who', (row) => row.toReversed().join(',')),
  );
  writeFileSync(
    several,
    text('user_id,asin,parent_asin,rating', ([user, item, rating]) => [user, item, item, rating].join(',')),
  );
  await json('train', known, '--test-fraction', '0.1', '--test-by', 'time', ...quick, '--model-dir', model);
});

describe('columns with usual names', () => {
  it('are found, and a note on stderr says which, once', async () => {
    const { code, stderr } = await factorflow(
      ...argv`train ${known} --test ${known} ${quick} --model-dir ${join(folder, 'noted')}`,
    );
    expect([
      code,
      stderr.split(
        'columns are recognised by their names: user is "userId", item is "movieId", rating is "stars"; others are chosen with --user-col, --item-col, --rating-col',
      ).length,
    ]).toEqual([0, 2]);
  });

  it('are counted by inspect', async () => {
    expect(await json('inspect', known)).toMatchObject({
      users: 17,
      names: { user: 'userId', item: 'movieId', rating: 'stars' },
    });
    const { stdout } = await factorflow('inspect', several, '--quiet');
    expect(stdout).toContain('Which column is the item? "asin" and "parent_asin" may be');
  });

  it('are an error with the candidates and the flag where several could be meant', async () => {
    await fails(
      3,
      /which column is the item\? "asin" and "parent_asin" may be; there are: .*Name it with --item-col/,
      ...argv`train ${several} ${quick} --model-dir ${join(folder, 'no')}`,
    );
    expect(
      await json('train', several, '--item-col', 'asin', ...quick, '--model-dir', join(folder, 'yes')),
    ).toMatchObject({ users: 17 });
  });
});

describe('columns named by flags', () => {
  const flags = ['--user-col', 'who', '--item-col', 'what'];
  const rated = [...flags, '--rating-col', 'how'];

  it('are taken by every command that reads ratings of a model', async () => {
    expect(await json('evaluate', model, odd, ...rated)).toMatchObject({ pairs: 300, coldPairs: 0 });
    expect(
      await json('predict', model, odd, ...flags, '--output', join(folder, 'predicted.csv')),
    ).toMatchObject({ rows: 300, coldPairs: 0 });
    expect(
      await json('recommend', model, '--users', '1', '--n', '3', '--exclude', odd, ...flags),
    ).toMatchObject({ users: 1 });
    expect(
      await json('fold-in', model, odd, ...rated, '--output', join(folder, 'folded.parquet')),
    ).toMatchObject({ users: 17 });
    expect(await json('explain', model, odd, ...rated, '--user', '1', '--item', '1')).toMatchObject({
      user: 1,
      item: 1,
    });
    expect(
      await json(
        ...argv`tune ${odd} ${rated} --try rank=2 --max-iter 1 --model-dir ${join(folder, 'tuned')}`,
      ),
    ).toMatchObject({ command: 'tune' });
  });

  it('must be there', async () => {
    await fails(
      3,
      /no such column \(column "whom"\)\. Did you mean who\?/,
      ...argv`evaluate ${model} ${odd} --user-col whom --item-col what --rating-col how`,
    );
    await fails(
      2,
      /--user-col acts only with --exclude/,
      ...argv`recommend ${model} --users 1 --user-col who`,
    );
  });
});

describe('names on the command line', () => {
  const path = (name: string) => join(folder, name);
  const put = (name: string, content: string | Uint8Array) => (
    writeFileSync(path(name), content),
    path(name)
  );

  const train = (
    input: string,
    ...flags: string[]
  ) => argv`train ${input} ${quick} --device cpu --quiet --force --model-dir ${path('model')}
  ${flags}`;

  describe('names on the command line', () => {
    beforeAll(async () => {
      const text = 'userId,item,rating\n1,"a,b",4\n1,c,2\n2,"a,b",1\n2,"say ""d""",5\n3,c,3\n';
      expect((await factorflow(...train(put('names.csv', text), '--user-col', 'userId'))).code).toBe(0);
    });

    test('ids with commas: in quotes, or by the flag again', async () => {
      const items = async (...flags: string[]) =>
        new Set(
          (
            (await json('similar', path('model'), ...flags, '--n', '1', '--quiet')).neighbours as {
              item: string;
            }[]
          ).map(({ item }) => item),
        );
      expect(await items('--item', '"a,b"')).toEqual(new Set(['a,b']));
      expect(await items('--item', 'c,"a,b", "say ""d"""')).toEqual(new Set(['c', 'a,b', 'say "d"']));
      expect(await items('--item', 'c', '--item', '"a,b"')).toEqual(new Set(['c', 'a,b']));
      expect(
        (await json('recommend', path('model'), '--users', '1', '--users', '2,3', '--quiet')).users,
      ).toBe(3);
    });

    test('a column that is nearly there', async () => {
      await fails(
        3,
        /there is no column "user"; there are: usrs .*\. Did you mean usrs\? Name the columns with --user-col/,
        ...train(put('near.csv', 'usrs,item,rating\n1,2,3\n')),
      );
      await fails(
        3,
        /there is no column "itme".*Did you mean item\? Name the columns with --user-col, --item-col and --rating-col$/m,
        ...argv`inspect ${path('names.csv')} --user-col userId --item-col itme`,
      );
      await fails(
        3,
        /there is no column "userId".*Name the columns with --user-col and --item-col$/m,
        ...argv`predict ${path('model')} ${put('renamed.csv', 'person,item\n1,2\n')} --output
      ${path('not-written.csv')}`,
      );
      await fails(
        3,
        /a type is given for a column that is not there \(.*\)\. Did you mean userId\?/,
        ...argv`convert ${path('names.csv')} ${path('x.parquet')} --types userid=int64`,
      );
    });
  });
});
