import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { refusals, argv, factorflow, fails, objectOf, quick, ratings, trainedModel } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const model = await trainedModel();
/** One thread, and no search for graphics cards: names do not depend on devices. */
const onCpu = ['--device', 'cpu', '--workers', '1'];
const titles = join(ratings, '../titles.parquet');

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The JSON object that a command line prints with --json, run in this process. */
async function here(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await factorflow(...args, ...onCpu, '--json', '--quiet');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return objectOf(stdout);
}

interface Named {
  readonly item: number;
  readonly name: string | null;
}

describe('--item-names', () => {
  it('shows titles in the table of recommend, and gives them with --json', async () => {
    const args = argv`recommend ${model} --users 26,27 --n 3 --item-names ${titles}`;
    const { recommendations } = (await here(...args)) as { recommendations: readonly Named[] };
    expect(recommendations.length).toBe(6);
    for (const { name } of recommendations) expect(name).toMatch(/^\S.* \(\d{4}\)$/);
    expect(Object.keys(recommendations[0])).toEqual(['user', 'rank', 'item', 'name', 'prediction']);
    const { stdout } = await factorflow(...args, ...onCpu, '--quiet');
    expect(stdout).toMatch(/user │ rank │ +item │ name +│ prediction/);
    for (const { item, name } of recommendations) expect(stdout).toContain(`${item} │ ${name}`);
  });

  it('of users for items, and of similar items, are the names of the items, also of those that were asked for', async () => {
    for (const asked of [
      ['recommend', model, '--items'],
      ['similar', model, '--item'],
    ])
      expect(
        (await factorflow(...argv`${asked} 111161 --n 2 --item-names ${titles} ${onCpu} --quiet`)).stdout,
      ).toMatch(/^ +111161 +The Shawshank Redemption \(1994\)\n┌/);
  });

  it('writes a column of names, which is absent without the flag', async () => {
    const written = async (...flags: readonly string[]) => {
      const output = join(folder, 'lists.csv');
      await here(...argv`recommend ${model} --users 26 --n 1 --output ${output} --force ${flags}`);
      return readFileSync(output, 'utf8').split('\n');
    };
    const named = await written('--item-names', titles);
    expect(named[0]).toBe('user,rank,item,name,prediction');
    expect(named[1]).toMatch(/^\d+,1,\d+,"?.+ \(\d{4}\)"?,\d/);
    expect((await written())[0]).toBe('user,rank,item,prediction');
  });

  it('shows titles of an explanation', async () => {
    const args = ['explain', model, ratings, '--user', '26', '--item', '111161', '--item-names', titles];
    expect(await here(...args)).toMatchObject({
      item: 111_161,
      name: 'The Shawshank Redemption (1994)',
      contributions: [{ item: 109_506, name: 'The Crow (1994)', rating: 9 }],
    });
    const { stdout } = await factorflow(...args, ...onCpu, '--quiet');
    expect(stdout).toContain('of item 111161 (The Shawshank Redemption (1994)) for user 26');
    expect(stdout).toMatch(/109506 │ The Crow \(1994\) │ +9 │/);
  });

  it('from text shows ids without a name as ids, and counts them in one note', async () => {
    const some = file(
      'some.csv',
      'movieId,title\n111161,"Redemption,\tThe ""Shawshank"" one whose title goes on for longer than any table is wide"\n468569,\n468569,The Dark Knight\n5,Unknown\n',
    );
    const { code, stdout, stderr } = await factorflow(
      ...argv`recommend ${model} --users 26 --n 3 --item-names ${some} ${onCpu}`,
    );
    expect(code).toBe(0);
    expect(stdout).toContain('Redemption, The "Shawshank" one whose title goes on for lon…');
    expect(stderr).toMatch(
      /item names of .*some\.csv: 1 row repeats an id, of which the first name counts; 1 id is not an item of the model; 10,504 of 10,506 items have no name and are shown as ids/,
    );
    const { recommendations } = (await here(
      ...argv`recommend ${model} --users 26 --n 20 --item-names ${some}`,
    )) as { recommendations: readonly Named[] };
    expect(recommendations.some(({ name }) => name === null)).toBe(true);
  });

  it('takes the columns that are named', async () => {
    const odd = file('odd.tsv', 'code\tyear\tlabel\n111161\t1994\tShawshank\n');
    const report = await here(
      ...argv`recommend ${model} --items 111161 --n 1 --item-names ${odd} --item-names-id-col code
      --item-names-col label`,
    );
    expect(report).toMatchObject({ recommendations: [{ name: 'Shawshank' }] });
  });

  it('of a training is compared with its items at the end, since a page with ids is better than no model', async () => {
    const pairs = Array.from({ length: 60 }, (_, i) => `${i % 10},${i % 7},${(i % 5) + 1}`);
    const few = file('few.csv', ['user,item,rating', ...pairs, ''].join('\n'));
    const args = argv`train ${few} ${quick} --model-dir ${join(folder, 'few')} --report
      ${join(folder, 'few.html')} --force ${onCpu}`;
    const none = await factorflow(...args, '--item-names', file('other.csv', 'id,title\ntt1,One\n'));
    expect(none.code).toBe(0);
    expect(none.stderr).toMatch(
      /no id of the names is an item of the model: the ids of the names are texts such as "tt1", the model's are numbers such as 0; items are shown as ids/,
    );
    const some = await factorflow(
      ...argv`${args} --item-names ${file('some-of.csv', 'id,title\n1,One\n99,Other\n')}`,
    );
    expect(some.stderr).toMatch(
      /item names: 1 id is not an item of the model; 6 of 7 items have no name and are shown as ids/,
    );
  });

  it('has genres that colour the map of a report', async () => {
    const pairs = Array.from({ length: 60 }, (_, i) => `${i % 10},${i % 7},${((3 * i) % 5) + 1}`);
    const few = file('coloured.csv', ['user,item,rating', ...pairs, ''].join('\n'));
    const kinds = file(
      'kinds.csv',
      'id,title,genre,kind\n0,A,x,Drama|War\n1,B,y,Drama\n2,C,,<b>Odd</b>\n3,D,x,<b>Odd</b>\n4,E,y,\n',
    );
    const page = join(folder, 'coloured.html');
    const args = argv`train ${few} ${quick} --model-dir ${join(folder, 'coloured')} --report ${page} --force
      --item-names ${kinds} ${onCpu}`;
    const legendOf = async (...flags: readonly string[]) => {
      expect((await factorflow(...args, ...flags)).code).toBe(0);
      return [...parseHTML(readFileSync(page, 'utf8')).document.querySelectorAll('#map-of-items .key')].map(
        ({ textContent }) => textContent,
      );
    };
    expect(await legendOf()).toEqual(['x 2', 'y 2', 'none 3']);
    expect(await legendOf('--item-names-genre-col', 'kind')).toEqual(['Drama 2', '<b>Odd</b> 2', 'none 3']);
    expect(parseHTML(readFileSync(page, 'utf8')).document.querySelectorAll('b')).toHaveLength(0);
  });

  it('of a model and ratings are not mixed up: a model as ratings is refused by name', async () => {
    const users = ['recommend', model, '--users', '26', ...onCpu];
    await fails(
      3,
      /this is the folder of a model, and ratings are needed .*model\)\. Give files of ratings/,
      ...argv`${users} --exclude ${model}`,
    );
  });

  it('says what is wrong with a file or a flag', async () => {
    const users = ['recommend', model, '--users', '26', ...onCpu];
    for (const [args, pattern] of refusals`
      ${users} --item-names ${ratings} | there is no column of item names; there are: user \(Int32\), item .*ratings\.parquet\)\. Name it with --item-names-col
      ${users} --item-names ${file('ids.csv', 'code,title,year\na,b,5\n')} | there is no column of item ids; there are: code \(Utf8\), title .*Name it with --item-names-id-col
      ${users} --item-names ${file('text.csv', 'id,title\ntt0111161,Shawshank\n')} | no id of the names is an item of the model: the ids of the names are texts such as "tt0111161", the model's are numbers such as \d+
      ${users} --item-names ${join(folder, 'absent.csv')} | absent\.csv
    `)
      await fails(3, pattern, ...args);
    for (const [args, pattern] of refusals`
      ${users} --item-names-col title | --item-names-col acts only with --item-names
      explain ${model} ${ratings} --user 26 --item 111161 --item-names-id-col id | --item-names-id-col acts only with --item-names
      train ${ratings} --model-dir ${join(folder, 'no')} --item-names-genre-col genre | --item-names-genre-col acts only with --item-names
    `)
      await fails(2, pattern, ...args);
    await fails(
      3,
      /there is no column "kind".*Give another --item-names-genre-col/,
      ...argv`train ${ratings} ${quick} --model-dir ${join(folder, 'no')} --report
      ${join(folder, 'no.html')} --item-names ${titles} --item-names-genre-col kind ${onCpu}`,
    );
    await fails(
      2,
      /--item-names cannot be used with --user/,
      ...argv`similar ${model} --user 26 --item-names ${titles}`,
    );
  });
});
