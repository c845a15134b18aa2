/** Every route of the server, for ids of every type. */
import { afterAll, describe, expect, it } from 'vitest';
import { routes } from '../../../cli/server/routes.ts';
import { ItemNames } from '../../../index.ts';
import { closeAll, errorOf, type Ids, numbers, saveModel, session, startServer } from './running-server.ts';

afterAll(closeAll);

const names = async () => new ItemNames([[40, 'Forty']]);
const pairs = () => session.fromRows([{ user: 1, item: 40 }]);
const server = await startServer(await saveModel('routes'), {
  data: { readNames: names, readExclude: async () => pairs() },
});
afterAll(() => server.end());

describe('routes', () => {
  it('recommend leaves out excluded pairs, and has names', async () => {
    expect(await server.get('/recommend/1?n=2')).toEqual({
      status: 200,
      body: {
        user: 1,
        known: true,
        items: [
          { item: 30, score: 3 },
          { item: 20, score: 2 },
        ],
        short: false,
        unknownItems: 0,
      },
    });
    const { body } = await server.get('/recommend/2?n=1');
    expect(body).toMatchObject({ items: [{ item: 40, name: 'Forty' }] });
  });

  it('recommend takes lists to deny and to allow, in one field or repeated', async () => {
    const itemsOf = async (query: string) =>
      ((await server.get(`/recommend/2?${query}`)).body as { items: { item: number }[] }).items.map(
        ({ item }) => item,
      );
    expect(await itemsOf('deny=40,30')).toEqual([20, 10]);
    expect(await itemsOf('deny=40&deny=10')).toEqual([30, 20]);
    expect(await itemsOf('allow=10,77')).toEqual([10]);
  });

  it('recommend gives popular items to an unknown user if asked to, else 404', async () => {
    expect(await server.get('/recommend/9')).toEqual({
      status: 404,
      body: errorOf('NOT_FOUND', /^the model has no user 9$/),
    });
    const { body } = await server.get('/recommend/9?unknownUsers=popular&n=1');
    expect(body).toMatchObject({ user: 9, known: false, fallback: 'popular', items: [{ item: 10 }] });
  });

  it('recommend answers several users at once, in their order', async () => {
    const { status, body } = await server.post('/recommend', { users: [3, 1], n: 1 });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      recommendations: [
        { user: 3, items: [{ item: 40 }] },
        { user: 1, items: [{ item: 30 }] },
      ],
    });
    expect((await server.post('/recommend', { users: [3, 9] })).status).toBe(404);
    const deny = Array.from({ length: 1000 }, (_, item) => item);
    expect(await server.post('/recommend', { users: deny.slice(0, 100).fill(1), n: 1, deny })).toEqual({
      status: 400,
      body: errorOf('USAGE', /at most 100,000, got 100 times 1001/),
    });
    expect((await server.post('/recommend', { users: [1], n: 1000, deny })).status).toBe(200);
  });

  it('fold-in recommends to a user given by ratings', async () => {
    const { status, body } = await server.post('/fold-in', { ratings: [{ item: 40, rating: 4 }], n: 1 });
    expect(status).toBe(200);
    expect(body).toMatchObject({ user: null, known: true, items: [{ item: 30 }] });
    const unknown = await server.post('/fold-in', { ratings: [{ item: 77, rating: 4 }] });
    expect(unknown).toEqual({
      status: 404,
      body: errorOf('NOT_FOUND', /no item of the ratings/),
    });
  });

  it('explain splits a score', async () => {
    const asked = { ratings: [{ item: 40, rating: 4 }], item: 30 };
    const { status, body } = await server.post('/explain', asked);
    expect(status).toBe(200);
    const { score, base, contributions } = body as {
      score: number;
      base: number;
      contributions: { item: number; name: string; share: number }[];
    };
    expect(contributions).toMatchObject([{ item: 40, name: 'Forty', rating: 4 }]);
    expect(base + contributions[0].share).toBeCloseTo(score, 6);
    expect((await server.post('/explain', { ...asked, item: 77 })).status).toBe(404);
  });

  it('similar-items and similar-users', async () => {
    const items = await server.get('/similar-items/40?n=1&similarity=dot');
    expect(items).toEqual({
      status: 200,
      body: { item: 40, similar: [{ item: 30, similarity: expect.closeTo(12, 3) }] },
    });
    const users = await server.get('/similar-users/3?n=5');
    expect(users.body).toMatchObject({ user: 3, similar: [{ user: 2 }, { user: 1 }] });
    expect((await server.get('/similar-items/77')).status).toBe(404);
  });

  it('predict, one pair and several', async () => {
    expect((await server.get('/predict/2/30')).body).toEqual({
      user: 2,
      item: 30,
      prediction: expect.closeTo(6, 4),
    });
    expect((await server.get('/predict/2/77')).status).toBe(404);
    const asked = {
      pairs: [
        { user: 1, item: 10 },
        { user: 9, item: 10 },
      ],
    };
    const { body } = await server.post('/predict', asked);
    expect(body).toMatchObject({ predictions: [{ prediction: expect.closeTo(1, 4) }, { prediction: null }] });
  });

  it('model, health, ready and metrics', async () => {
    const { body } = await server.get('/model');
    expect(body).toMatchObject({ rank: 2, users: 3, items: 4, ids: { user: 'integer', item: 'integer' } });
    expect((await server.get('/health')).body).toEqual({ ok: true });
    expect((await server.get('/ready')).body).toEqual({
      ready: true,
      model: (body as { version: string }).version,
    });
    expect(await server.metric('factorflow_model_items')).toBe(4);
    const before = await server.metric(
      'factorflow_requests_total{route="/predict/:user/:item",status="200"}',
    );
    await server.get('/predict/1/10');
    expect(await server.metric('factorflow_requests_total{route="/predict/:user/:item",status="200"}')).toBe(
      before + 1,
    );
    const text = String((await server.get('/metrics')).body);
    for (const line of text.trim().split('\n'))
      expect(line).toMatch(/^(# (HELP|TYPE) factorflow_\w+ .+|factorflow_\w+(\{[^}]+\})? [\d.e+-]+)$/);
  });

  it('the OpenAPI document and its page have all routes', async () => {
    const { body } = await server.get('/openapi.json');
    const page = String((await server.get('/docs')).body);
    const { paths } = body as { paths: Record<string, Record<string, unknown>> };
    for (const { method, path } of routes) {
      expect(paths[path]).toHaveProperty(method.toLowerCase());
      expect(page).toContain(`${method} ${path}`);
    }
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(['/health', '/ready', '/metrics', '/openapi.json', '/docs']),
    );
  });
});

const kinds: Readonly<Record<string, Ids & { readonly shown: readonly (number | string)[] }>> = {
  int32: { ...numbers, shown: [10, 20, 30, 40] },
  'int64 within 2^53': { type: 'int64', users: [1n, 2n], items: [5n, 2n ** 40n], shown: [5, 2 ** 40] },
  'int64 beyond 2^53': {
    type: 'int64',
    users: [1n, 2n ** 62n],
    items: [5n, 2n ** 60n + 1n],
    shown: ['5', '1152921504606846977'],
  },
  text: { type: 'utf8', users: ['a/b', 'ü ?&'], items: ['007', 'x,y'], shown: ['007', 'x,y'] },
};

it.each(Object.keys(kinds))('ids of type %s', async (name) => {
  const { shown, ...ids } = kinds[name];
  const other = await startServer(await saveModel(`ids-${ids.type}-${shown.length}-${shown[0]}`, ids));
  try {
    const path = (id: unknown) => encodeURIComponent(String(id));
    const user = ids.users.at(-1);
    const { status, body } = await other.get(`/recommend/${path(user)}`);
    expect(status).toBe(200);
    const { items } = body as { items: { item: unknown }[] };
    expect(items.map(({ item }) => item)).toEqual(shown.toReversed());
    const similar = await other.get(`/similar-items/${path(shown[0])}`);
    expect(similar.body).toMatchObject({ item: shown[0] });
    const rated = await other.post('/fold-in', { ratings: [{ item: shown[0], rating: 2 }] });
    expect(rated.body).toMatchObject({ known: true });
    const denied = await other.post('/recommend', { users: [String(user)], deny: [shown[0]] });
    expect(JSON.stringify(denied.body)).not.toContain(`"item":${JSON.stringify(shown[0])}`);
    for (const unknown of ['77', 'x', '9'.repeat(40), '1.5', '%20', '-1'])
      expect((await other.get(`/recommend/${unknown}`)).status, unknown).toBe(404);
  } finally {
    await other.end();
  }
});

it('texts that a path cannot have, and long ones, are ids in bodies', async () => {
  const odd = ['', ' ', '%2e', '.', '..', 'a,b', 'x'.repeat(10_000)];
  const other = await startServer(await saveModel('odd-ids', { type: 'utf8', users: odd, items: odd }));
  try {
    for (const id of odd) {
      const answers = [
        await other.post('/recommend', { users: [id], n: 1 }),
        await other.post('/predict', { pairs: [{ user: id, item: id }] }),
        await other.post('/similar-items', { item: id, n: 1 }),
        await other.post('/similar-users', { user: id, n: 1 }),
        await other.post('/fold-in', { ratings: [{ item: id, rating: 3 }], deny: [id] }),
      ];
      for (const { status } of answers) expect([id, status]).toEqual([id, 200]);
      const [recommended, predicted, items, users] = answers.map(({ body }) => body);
      expect(recommended).toMatchObject({ recommendations: [{ user: id, known: true }] });
      expect(predicted).toMatchObject({
        predictions: [{ user: id, item: id, prediction: expect.any(Number) }],
      });
      expect([items, users]).toMatchObject([{ item: id }, { user: id }]);
      // A client resolves dots in a path before it sends it.
      if (id === '.' || id === '..') continue;
      const path = encodeURIComponent(id);
      expect((await other.get(`/recommend/${path}`)).body).toMatchObject({ user: id, known: true });
      expect((await other.get(`/predict/${path}/.,`)).status).toBe(404);
      expect((await other.get(`/similar-items/${path}`)).body).toMatchObject({ item: id });
    }
  } finally {
    await other.end();
  }
});
