/** `serve --index`: answers from the index of the model's folder. */
import { afterAll, expect, it } from 'vitest';
import { closeAll, saveModel, session, startServer } from './running-server.ts';

afterAll(closeAll);

it('answers from the index if it is asked for, and refuses a model without one', async () => {
  const folder = await saveModel('indexed');
  await expect(startServer(folder, { data: { index: true } })).rejects.toThrow(/no index for recommend/);
  const model = await session.loadModel(folder);
  await model.buildIndex({ lists: 2 });
  await model.saveIndex(folder);
  const plain = await startServer(folder);
  const all = await startServer(folder, { data: { index: 2 } });
  expect((await all.get('/recommend/2?n=3')).body).toMatchObject({
    items: [{ item: 40 }, { item: 30 }, { item: 20 }],
  });
  const rated = { ratings: [{ item: 10, rating: 2 }], n: 2 };
  const answers = async (server: typeof plain) => [
    (await server.get('/recommend/2?n=3')).body,
    (await server.get('/similar-items/20?n=3&similarity=dot')).body,
    (await server.get('/similar-users/2?n=1')).body,
    (await server.post('/fold-in', rated)).body,
  ];
  expect(await answers(all)).toEqual(await answers(plain));
  for (const server of [plain, all]) await server.end();
});
