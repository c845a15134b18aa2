/** The OpenAPI document: valid, and every answer is exactly as it says. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openApi } from '../../../cli/server/open-api.ts';
import { routes } from '../../../cli/server/routes.ts';
import { ItemNames, type Model } from '../../../index.ts';
import { closeAll, numbers, saveModel, scratch, startServer } from './running-server.ts';
import { type OpenApiDocument, strictClient } from './strict-client.ts';

const { Validator } = createRequire(import.meta.url)('@seriousme/openapi-schema-validator') as {
  readonly Validator: new () => {
    readonly version: string;
    validate(document: object): Promise<{ readonly valid: boolean; readonly errors?: unknown }>;
  };
};

afterAll(closeAll);

const attributes = join(scratch, 'attributes.csv');
writeFileSync(attributes, 'item,price\n10,1\n20,2\n30,3\n40,4\n');
const server = await startServer(await saveModel('documented', { ...numbers, items: [10, 20, 30, 40] }), {
  data: {
    readNames: async () => new ItemNames([[40, 'Forty']]),
    readFilters: (model: Model) => model.readItemFilters(attributes),
  },
});
afterAll(() => server.end());
const document = (await server.get('/openapi.json')).body as OpenApiDocument;
const client = strictClient(server.address, document);

it.each([false, true])('the document is valid OpenAPI 3.1 (with a token: %s)', async (secured) => {
  const validator = new Validator();
  expect(await validator.validate(structuredClone(openApi(routes, secured)))).toEqual({ valid: true });
  expect(validator.version).toBe('3.1');
});

describe('a strict client', () => {
  const ratings = [{ item: 40, rating: 4 }];
  it.each([
    ['get_recommend_user', { path: { user: 1 }, query: { n: 2, deny: ['30', '20'], filter: 'price > 1' } }],
    ['get_recommend_user', { path: { user: 9 }, query: { unknownUsers: 'popular' }, lenient: true }],
    ['post_recommend', { body: { users: [1, '2'], allow: [10, 40], n: 3 } }],
    ['post_recommend', { body: { users: [9], unknownUsers: 'popular' } }],
    ['post_fold_in', { body: { ratings } }],
    ['post_fold_in', { body: { ratings: [{ item: 77, rating: 1 }], unknownUsers: 'popular' } }],
    ['post_explain', { body: { ratings, item: 30 } }],
    ['post_explain', { body: { ratings, item: 40 } }],
    ['get_similar_items_item', { path: { item: 40 } }],
    ['get_similar_users_user', { path: { user: 3 }, query: { similarity: 'dot' } }],
    ['post_similar_items', { body: { item: 40, n: 1 } }],
    ['post_similar_users', { body: { user: 3, similarity: 'dot' } }],
    ['get_predict_user_item', { path: { user: 1, item: 40 } }],
    [
      'post_predict',
      {
        body: {
          pairs: [
            { user: 1, item: 10 },
            { user: 9, item: 10 },
          ],
        },
      },
    ],
    ['get_model', {}],
    ['get_health', {}],
    ['get_ready', {}],
    ['get_metrics', {}],
    ['get_openapi', {}],
    ['get_docs', {}],
  ] as const)('calls %s', async (operation, sent) => {
    expect((await client[operation](sent)).status).toBe(200);
  });

  it.each([
    ['get_recommend_user', { path: { user: 9 } }, 404],
    ['get_recommend_user', { path: { user: 1 }, query: { n: 0 }, lenient: true }, 400],
    ['post_fold_in', { body: { ratings: [] }, lenient: true }, 400],
    ['post_predict', { body: 'x'.repeat(2 ** 20), lenient: true }, 413],
    ['post_predict', { lenient: true, body: {} }, 400],
  ] as const)('gets the error of %s %o', async (operation, sent, status) => {
    expect((await client[operation](sent)).status).toBe(status);
  });

  it('is refused its own wrong requests, and notices wrong answers', async () => {
    await expect(client.post_predict({ body: {} })).rejects.toThrow("required property 'pairs'");
    const { paths } = document;
    const other = JSON.parse(JSON.stringify(paths).replaceAll('"loadedAt"', '"loaded"')) as typeof paths;
    await expect(strictClient(server.address, { ...document, paths: other }).get_model()).rejects.toThrow(
      'loaded',
    );
  });

  it('has a function for every route', () => {
    const called = Object.keys(client);
    expect(called).toHaveLength(new Set(called).size);
    expect(called).toHaveLength(routes.length + 5);
  });
});
