/**
 * Serve recommendations from a web server: the model is loaded and prepared in threads, a request is a search
 * in a thread, and the event loop stays free. With PORT the server stays; without it a few requests show what
 * it answers.
 *
 *   npm run build && PORT=8080 npx node examples/08-serve-with-fastify.ts
 *   curl 'localhost:8080/recommend/26?n=3&deny=68646'
 *   curl 'localhost:8080/recommend?n=3' -H 'content-type: application/json' -d '{"ratings": [{"item": 68646, "rating": 10}]}'
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALS, FactorFlowError, Session } from 'factorflow';
import Fastify from 'fastify';

const session = await Session.create({ device: 'cpu' });
const data = join(import.meta.dirname, 'data/movietweetings-100k');
const ratings = session.read.parquet(join(data, 'ratings.parquet'));

// A service would have a model that was trained elsewhere.
const directory = join(tmpdir(), 'factorflow-served-model');
await new ALS({ rank: 16, seed: 1 })
  .fit(ratings)
  .then((trained) => trained.save(directory, { overwrite: true }));

const model = await session.loadModel(directory);
await model.prepare();
const seen = await model.exclusions(ratings);
const names = await session.readItemNames(join(data, 'titles.parquet'), { model });

const server = Fastify();
// A request that cannot be answered is the client's error: wrong ids, ratings or numbers (UsageError), and
// bodies that Fastify refuses, which are no JSON or too large.
server.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
  const usage = error instanceof FactorFlowError && error.code === 'USAGE';
  const status = usage ? 400 : (error.statusCode ?? 500);
  void reply.code(status).send({ error: status < 500 ? error.message : 'internal error' });
});
// `recommend` and `explain` give ids that JSON has; Arrow rows, as of `similarItems`, have ids of 64 bits as
// bigints.
server.setReplySerializer((payload) =>
  JSON.stringify(payload, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
);

server.get<{ Params: { user: string }; Querystring: { n?: string; deny?: string } }>(
  '/recommend/:user',
  async ({ params, query }) => {
    const deny = query.deny?.split(',') ?? [];
    return model.recommend(params.user, Number(query.n ?? 10), {
      exclude: seen,
      deny,
      names,
      unknownUsers: 'popular',
    });
  },
);

// A user who has just come, by ratings: solved within the request, and each recommendation with the film that
// speaks most for it.
server.post<{ Body?: { ratings?: unknown }; Querystring: { n?: string } }>(
  '/recommend',
  async ({ body, query }) => {
    // The model checks them: it throws UsageError for all that is no list of ratings.
    const rated = body?.ratings as { item: number; rating: number }[];
    const { items, ...answer } = await model.recommend({ ratings: rated }, Number(query.n ?? 10), {
      names,
      unknownUsers: 'popular',
    });
    const explained = items.map(async (one) => ({
      ...one,
      because: (await model.explain(rated, one.item, { names })).contributions[0]?.name,
    }));
    return { ...answer, items: await Promise.all(explained) };
  },
);

server.get<{ Params: { item: string }; Querystring: { n?: string } }>(
  '/similar/:item',
  async ({ params, query }, reply) => {
    if (!model.hasItem(params.item))
      return reply.code(404).send({ error: `there is no item ${params.item}` });
    const similar = [];
    for await (const batch of model.similarItems([params.item], Number(query.n ?? 10), { names }))
      similar.push(...batch.toArray().map((row) => row.toJSON()));
    return { item: params.item, similar };
  },
);

server.addHook('onClose', async () => {
  await model.close();
  await session.close();
});

if (process.env.PORT === undefined) {
  for (const url of [
    '/recommend/26?n=3',
    '/recommend/26?n=3&deny=68646,77777',
    '/recommend/999999?n=2',
    '/similar/68646?n=2',
    '/similar/5',
    '/recommend/26?n=0',
  ]) {
    const { statusCode, body } = await server.inject(url);
    console.log(`${url} -> ${statusCode} ${body}`);
  }
  for (const ratings of [
    [
      { item: 68646, rating: 10 },
      { item: 468569, rating: 9 },
      { item: 77777, rating: 1 },
    ],
    [],
  ]) {
    const { statusCode, body } = await server.inject({
      method: 'POST',
      url: '/recommend?n=2',
      payload: { ratings },
    });
    console.log(`${ratings.length} ratings -> ${statusCode} ${body}`);
  }
  await server.close();
} else {
  console.log(`listening at ${await server.listen({ port: Number(process.env.PORT) })}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close());
}
