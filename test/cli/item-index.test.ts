/** The command `index`, and the flag --index of the commands that search. */
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { factorflow, fails, json, temporaryFolder, trainedModel } from './run-cli.ts';

const folder = temporaryFolder();

it('index writes files into the model, which recommend and similar search', async () => {
  const model = join(folder, 'model');
  cpSync(await trainedModel(), model, { recursive: true });
  const users = ['--users', '26,27,28', '--n', '5'];
  const item = ['--item', '111161', '--n', '5'];
  await fails(2, /no index for recommend.*factorflow index/s, 'recommend', model, ...users, '--index', 'on');
  expect(await json('index', model, '--lists', '40', '--recall', '0.9')).toMatchObject({
    command: 'index',
    model,
    indexes: [
      { search: 'recommend', lists: 40 },
      { search: 'similar', lists: 40 },
    ],
  });
  expect(readdirSync(join(model, 'itemIndex')).sort()).toEqual(['recommend.lists', 'similar.lists']);
  const lists = async (index: string) =>
    (await json('recommend', model, ...users, '--index', index)).recommendations;
  const exact = await lists('off');
  expect(await lists('auto')).toEqual(exact);
  expect(await lists('40')).toEqual(exact);
  expect(await lists('on')).toHaveLength(15);
  const similar = async (index: string) =>
    (await json('similar', model, ...item, '--index', index)).neighbours;
  expect(await similar('40')).toEqual(await similar('off'));
  await fails(
    2,
    /--index must be auto, on, off or a number of lists/,
    'similar',
    model,
    ...item,
    '--index',
    '0',
  );
  await fails(2, /--index cannot be used with --user/, 'similar', model, '--user', '26', '--index', 'on');
  await fails(2, /--index acts only with/, 'recommend', model, '--items', '111161', '--index', 'on');
  const { stdout } = await factorflow('index', model, '--searches', 'similar', '--quiet', '--lists', '20');
  expect(stdout).toMatch(/similar +20 lists, \d+ searched: \d+\.\d % of the 20 best/);
});
