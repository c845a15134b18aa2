/** Items and users that requests and files add to a served model by their attributes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Field, FixedSizeList, Float32, Int32, Table, vectorFromArray } from 'apache-arrow';
import { afterAll, describe, expect, it } from 'vitest';
import { AddedRows } from '../../../cli/server/added-rows.ts';
import { ALS, type Model } from '../../../index.ts';
import {
  closeAll,
  errorOf,
  type RunningServer,
  saveModel,
  scratch,
  session,
  startServer,
} from './running-server.ts';
import { type OpenApiDocument, strictClient } from './strict-client.ts';

afterAll(closeAll);

const RELOADS = 'factorflow_reloads_total{outcome="ok"}';
const kinds = ['tea', 'coffee'];
const products = Array.from({ length: 12 }, (_, at) => ({
  sku: at,
  kind: kinds[at % 2],
  price: 3 + (at % 4),
}));
const people = Array.from({ length: 20 }, (_, at) => ({ person: at, drinks: kinds[at % 2] }));
/** Everyone buys what they drink; product 11 and person 19 have no ratings. */
const bought = people.slice(0, 19).flatMap(({ person }) =>
  products
    .slice(0, 11)
    .filter(({ sku }) => sku % 2 === person % 2 && (sku + person) % 3 > 0)
    .map(({ sku }) => ({ person, sku, rating: 1 + ((sku + person) % 4) })),
);

/** Trains and saves a model of the products. */
async function train(name: string, columns: readonly string[] = ['kind', 'price']): Promise<string> {
  const als = new ALS({
    rank: 4,
    maxIter: 3,
    itemAttributes: { data: session.fromRows(products), id: 'sku', columns },
    userAttributes: { data: session.fromRows(people), id: 'person', minCount: 1 },
  });
  const rows = session.fromRows(bought, { columns: { user: 'person', item: 'sku' } });
  const folder = join(scratch, name);
  await (await als.fit(rows)).save(folder, { overwrite: true });
  return folder;
}

const itemsOf = async (server: RunningServer, query: string) =>
  ((await server.get(`/recommend/${query}`)).body as { items: { item: number }[] }).items.map(
    ({ item }) => item,
  );

const server = await startServer(await train('shop'), {
  data: { readExclude: async () => session.fromRows(bought, { columns: { user: 'person', item: 'sku' } }) },
});
afterAll(() => server.end());

describe('POST /items and /users', () => {
  it('add rows that all routes know, and that exclusions are kept with', async () => {
    const before = await itemsOf(server, '3?n=100');
    const { status, body } = await server.post('/items', {
      items: [
        { sku: -5, kind: 'coffee', price: 4 },
        { sku: 99, kind: 'tea', price: null },
      ],
    });
    expect({ status, body }).toEqual({
      status: 200,
      body: { added: 2, changed: 0, kept: 0, bare: 0, items: 14 },
    });
    // The positions of all items have changed, and what the user bought stays excluded.
    expect((await itemsOf(server, '3?n=100')).sort((a, b) => a - b)).toEqual(
      [-5, ...before, 99].sort((a, b) => a - b),
    );
    expect(await itemsOf(server, '3?n=100&coldItems=exclude')).not.toContain(-5);
    expect(await server.get('/similar-items/-5?n=1')).toMatchObject({ status: 200 });
    expect(await server.get('/predict/3/99')).toMatchObject({ status: 200 });
    const users = await server.post('/users', { users: [{ person: '70', drinks: 'coffee' }] });
    expect(users.body).toEqual({ added: 1, changed: 0, kept: 0, bare: 0, users: 21 });
    // Person 19 has the same attributes, and no ratings either.
    const scoresOf = async (user: number) =>
      (await server.get(`/recommend/${user}?n=100`)).body as { items: unknown };
    expect((await scoresOf(70)).items).toEqual((await scoresOf(19)).items);
  });

  it('say which rows were known, and which have no attribute of the training', async () => {
    const rows = [
      { sku: 1, kind: 'tea', price: 9 },
      { sku: 11, kind: 'tea', price: 9 },
      { sku: 500, kind: 'soap' },
    ];
    expect((await server.post('/items', { items: rows })).body).toEqual({
      added: 1,
      changed: 1,
      kept: 1,
      bare: 1,
      items: 15,
    });
    const { body } = await server.get('/model');
    expect(body).toMatchObject({
      items: 15,
      attributes: {
        item: {
          id: 'sku',
          columns: [
            { name: 'kind', kind: 'category' },
            { name: 'price', kind: 'category' },
          ],
        },
        user: { id: 'person' },
      },
    });
  });

  it('answer as the OpenAPI document says', async () => {
    const client = strictClient(server.address, (await server.get('/openapi.json')).body as OpenApiDocument);
    const { status } = await client.post_items({ body: { items: [{ sku: 99, kind: 'tea', price: 3 }] } });
    expect(status).toBe(200);
    expect((await client.post_users({ body: { users: [{ person: 70 }] } })).status).toBe(200);
    expect((await client.post_items({ body: { items: [{ sku: 'x' }] } })).status).toBe(400);
    expect((await client.get_model()).status).toBe(200);
  });

  it('rows are kept through a reload, by the coefficients of the new model', async () => {
    const folder = await train('kept');
    const own = await startServer(folder);
    await own.post('/items', { items: [{ sku: 300, kind: 'tea', price: 3 }] });
    await own.post('/users', { users: [{ person: 300, drinks: 'tea' }] });
    const score = async () => ((await own.get('/predict/300/300')).body as { prediction: number }).prediction;
    const first = await score();
    const als = new ALS({
      rank: 4,
      maxIter: 5,
      itemAttributes: { data: session.fromRows(products), id: 'sku' },
      userAttributes: { data: session.fromRows(people), id: 'person' },
    });
    const rows = session.fromRows(bought, { columns: { user: 'person', item: 'sku' } });
    const model = await als.fit(rows);
    await model.save(folder, { overwrite: true });
    own.hangup();
    while ((await own.metric(RELOADS)) < 1) await pause(20);
    const wanted = await (
      await model.withItems([{ sku: 300, kind: 'tea', price: 3 }])
    ).withUsers([{ person: 300, drinks: 'tea' }]);
    expect(await score()).toBeCloseTo(wanted.score(300, 300) ?? Number.NaN, 6);
    expect(await score()).not.toBe(first);
    // A model that cannot have them is served without them.
    await saveModel('kept');
    own.hangup();
    while ((await own.metric(RELOADS)) < 2) await pause(20);
    expect((await own.get('/predict/300/300')).status).toBe(404);
    expect(own.events).toContainEqual({
      type: 'warning',
      text: expect.stringMatching(/^1 item that requests added cannot be kept: the model has no attributes/),
    });
    await own.end();
  });

  it('rows that come during a reload are in the new model', async () => {
    const folder = await train('meanwhile');
    const [gate, reloading] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let loads = 0;
    const own = await startServer(folder, {
      data: {
        readNames: async () => {
          if (++loads === 1) return undefined;
          reloading.resolve();
          await gate.promise;
          return undefined;
        },
      },
    });
    own.hangup();
    await reloading.promise;
    await own.post('/items', { items: [{ sku: 300, kind: 'tea' }] });
    gate.resolve();
    while ((await own.metric(RELOADS)) < 1) await pause(20);
    expect((await own.get('/similar-items/300')).status).toBe(200);
    await own.end();
  });

  it('a user given by ratings is drawn to the attributes of the request, or of a user who was added', async () => {
    const own = await startServer(await train('drawn'));
    await own.post('/users', { users: [{ person: 300, drinks: 'tea' }] });
    const ratings = [{ item: 0, rating: 3 }];
    const answer = async (path: string, more: object) => (await own.post(path, { ratings, ...more })).body;
    const recommended = await answer('/fold-in', { user: 300 });
    expect(recommended).toEqual(await answer('/fold-in', { attributes: { drinks: 'tea' } }));
    expect(recommended).not.toEqual(await answer('/fold-in', {}));
    expect(await answer('/fold-in', { user: 301 })).toEqual(await answer('/fold-in', {}));
    const unknown = [{ item: 77, rating: 1 }];
    const { status, body } = await own.post('/fold-in', { ratings: unknown, user: 300 });
    const list = (await own.get('/recommend/300')).body as { items: unknown };
    expect({ status, body }).toMatchObject({ status: 200, body: { known: true, items: list.items } });
    for (const path of ['/fold-in', '/explain']) {
      const asked = path === '/explain' ? { item: 11 } : {};
      expect(await own.post(path, { ratings: unknown, ...asked })).toEqual({
        status: 404,
        body: errorOf('NOT_FOUND', /no item of the ratings/),
      });
      for (const [more, message] of [
        [{ attributes: { drnks: 'tea' } }, /^attributes has the unknown field "drnks". Is it drinks\?$/],
        [
          { attributes: { drinks: { a: 1 } } },
          /^the field drinks of attributes: .*not a value of an attribute/,
        ],
        [{ attributes: 'tea' }, /^the field attributes must be an object, got "tea"$/],
        [{ user: null }, /^user must be an id/],
      ] as const)
        expect(await own.post(path, { ratings, ...asked, ...more })).toEqual({
          status: 400,
          body: errorOf('USAGE', message),
        });
    }
    const explained = await answer('/explain', { item: 11, user: 300 });
    const { score, base, userAttributes, contributions } = explained as {
      score: number;
      base: number;
      userAttributes: number;
      contributions: { share: number }[];
    };
    expect(base + userAttributes + contributions[0].share).toBeCloseTo(score, 6);
    expect(userAttributes).not.toBe(0);
    // A loaded model has no attributes of its items in memory.
    expect(explained).not.toHaveProperty('itemAttributes');
    await own.post('/items', { items: [{ sku: 11, kind: 'tea', price: 4 }] });
    const { itemAttributes } = (await answer('/explain', { item: 11, user: 300 })) as {
      itemAttributes: { column: string; value: string; share: number }[];
    };
    expect(itemAttributes.map(({ column, value }) => [column, value]).sort()).toEqual([
      ['kind', 'tea'],
      ['price', '4'],
    ]);
    await own.end();
  });

  it.each([
    ['/items', { items: [] }, /items must be a list of 1 to 10,000/],
    ['/items', { items: Array.from({ length: 10_001 }, (_, sku) => ({ sku })) }, /got a list of 10001/],
    ['/items', { items: [[1]] }, /^the item 1 must be an object, got a list of 1$/],
    ['/items', { items: [{ kind: 'tea' }] }, /^item 1 has no field sku, its id$/],
    ['/items', { items: [{ sku: null }] }, /^sku of item 1 must be an id/],
    ['/items', { items: [{ sku: 'x7' }] }, /"x7" is not an id: ids are int32 here/],
    ['/items', { items: [{ sku: 7, knid: 'tea' }] }, /^item 1 has the unknown field "knid". Is it kind\?$/],
    [
      '/items',
      { items: [{ sku: 7, kind: { a: 1 } }] },
      /not a value of an attribute \(category\), item 1, field kind$/,
    ],
    ['/items', { items: [{ sku: 7 }, { sku: 7 }] }, /^the id 7 has attributes twice, in rows 1 and 2/],
    ['/users', { users: [{ person: 7, kind: 'tea' }] }, /^user 1 has the unknown field "kind"/],
  ])('refuse %s %o', async (path, body, message) => {
    const before = (await server.get('/model')).body;
    expect(await server.post(path, body)).toEqual({ status: 400, body: errorOf('USAGE', message) });
    expect((await server.get('/model')).body).toEqual(before);
  });

  it('refuse vectors of another length, and models that cannot take rows', async () => {
    const numbers = new FixedSizeList(3, new Field('item', new Float32()));
    const table = new Table({
      sku: vectorFromArray(Array.from(products.keys()), new Int32()),
      vector: vectorFromArray(
        products.map(({ sku }) => [sku % 2, 1, sku % 3]),
        numbers,
      ),
    });
    const vectors = session.from(table.batches);
    const als = new ALS({
      rank: 2,
      maxIter: 2,
      itemAttributes: { data: vectors, id: 'sku', columns: { vector: 'vector' } },
    });
    const rows = session.fromRows(bought, { columns: { user: 'person', item: 'sku' } });
    const model = await als.fit(rows);
    await model.buildIndex({ lists: 2 });
    const folder = join(scratch, 'vectors');
    await model.save(folder);
    const own = await startServer(folder);
    expect(await own.post('/items', { items: [{ sku: 50, vector: [1, 2] }] })).toEqual({
      status: 400,
      body: errorOf('USAGE', /^a vector has 2 numbers, and others have 3, item 1, field vector$/),
    });
    expect((await own.post('/items', { items: [{ sku: 50, vector: [1, 2, null] }] })).body).toMatchObject({
      added: 1,
      bare: 1,
    });
    expect(await own.post('/users', { users: [{ person: 50 }] })).toEqual({
      status: 400,
      body: errorOf('USAGE', /^the model has no attributes of users, so it takes no further users$/),
    });
    await own.end();
    await model.saveIndex(folder);
    const indexed = await startServer(folder, { data: { index: true } });
    expect(await indexed.post('/items', { items: [{ sku: 50, vector: [1, 2, 3] }] })).toEqual({
      status: 400,
      body: errorOf('USAGE', /^the model has an index of its items, which takes no further ones/),
    });
    await indexed.end();
  });

  it('need a token where other machines can reach the server', async () => {
    const own = await startServer(await train('open'), { host: '0.0.0.0' });
    const address = own.address.replace('0.0.0.0', '127.0.0.1');
    const sent = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const body = JSON.stringify({ items: [{ sku: 50 }] });
    const answer = await fetch(`${address}/items`, { ...sent, body });
    expect({ status: answer.status, body: await answer.json() }).toEqual({
      status: 403,
      body: errorOf('FORBIDDEN', /^a server without a token takes no changes/),
    });
    await own.end();
  });
});

describe('AddedRows', () => {
  it('replace rows with the same id, and have a limit', () => {
    const added = new AddedRows();
    added.keep('item', [{ sku: 1, kind: 'tea' }, { sku: 2 }], [1, 2]);
    added.keep('item', [{ sku: 1, kind: 'coffee' }], ['1']);
    expect(added.since('item', 0)).toEqual([{ sku: 2 }, { sku: 1, kind: 'coffee' }]);
    expect(added.since('item', 2)).toEqual([{ sku: 1, kind: 'coffee' }]);
    const many = Array.from({ length: 99_999 }, (_, at) => ({ at }));
    expect(() => added.keep('user', many, Array.from(many.keys()))).toThrow(
      'at most 100,000 added items and users',
    );
    expect(added.since('user', 0)).toEqual([]);
    const long = { text: 'x'.repeat(2 ** 26) };
    expect(() => added.keep('user', [long], [1])).toThrow('64 MiB');
  });
});

describe('--item-attributes', () => {
  it('adds the items of a file, with each load', async () => {
    const file = join(scratch, 'later.csv');
    writeFileSync(file, 'sku,kind,price\n40,tea,4\n41,coffee,5\n');
    const folder = await train('by-file');
    const filters = join(scratch, 'stock.csv');
    writeFileSync(filters, 'sku,stock\n40,0\n41,3\n42,5\n');
    const own = await startServer(folder, {
      data: {
        attributeFiles: { item: file },
        readFilters: (model: Model) => model.readItemFilters(filters),
      },
    });
    expect((await own.get('/model')).body).toMatchObject({ items: 14 });
    expect(await itemsOf(own, '3?n=100&filter=stock+>+0')).toEqual([41]);
    // The file of filters has a row for the item that a request adds.
    await own.post('/items', { items: [{ sku: 42, kind: 'tea' }] });
    expect((await itemsOf(own, '3?n=100&filter=stock+>+0')).sort()).toEqual([41, 42]);
    writeFileSync(file, 'sku,kind,price\n40,tea,4\n41,coffee,5\n43,tea,3\n');
    own.hangup();
    while ((await own.metric(RELOADS)) < 1) await pause(20);
    expect((await own.get('/model')).body).toMatchObject({ items: 16 });
    await own.end();
  });

  it('is refused with an index that does not have its items', async () => {
    const folder = await train('indexed');
    const model = await session.loadModel(folder);
    await model.buildIndex({ lists: 2 });
    await model.saveIndex(folder);
    await model.close();
    const file = join(scratch, 'more.csv');
    writeFileSync(file, 'sku,kind,price\n40,tea,4\n');
    await expect(
      startServer(folder, { data: { attributeFiles: { item: file }, index: true } }),
    ).rejects.toThrow('the index of the model does not have the items that --item-attributes adds');
  });
});
