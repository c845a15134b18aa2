import type { RatedItem } from '../../api/serving/fold-in-request.ts';
import { UsageError } from '../../engine/errors.ts';
import type { Id, JsonObject, UserRecommendations } from '../../index.ts';
import type { SentRow } from './added-rows.ts';
import { HttpError } from './http-error.ts';
import { filterOf } from './item-filter.ts';
import { idsForJson, type LoadedModel, requireKnown } from './loaded-model.ts';
import {
  answerSchema,
  defineRoute,
  type Field,
  type FieldValues,
  idSchema,
  listOf,
  type Route,
  schemaOf,
} from './route.ts';
import { countParam, listParams, similarParams } from '../../api/option-params.ts';

/** Most ids, pairs or ratings in a list of a request; and most users. */
const MOST_LISTED = 10_000;
const MOST_USERS = 1000;

/** Most users of one request times the entries of its lists, which are read while all other requests wait. */
const MOST_WORK = 100_000;

const id = (describe: string): Field<Id> => ({ describe, schema: idSchema, required: true });

const ids = (describe: string): Field<readonly Id[] | undefined> => ({
  describe,
  schema: { type: 'array', maxItems: MOST_LISTED, items: idSchema },
});

/** One of these texts; the first is the default. */
const choice = <const C extends string>(describe: string, ...choices: readonly C[]): Field<C> => ({
  describe,
  schema: { type: 'string', enum: choices, default: choices[0] },
});

const n: Field<number> = {
  describe: 'most entries of the list',
  schema: {
    type: 'integer',
    minimum: countParam.least,
    maximum: countParam.most,
    default: countParam.fallback,
  },
};

const filter: Field<string | undefined> = {
  describe:
    "condition on the attributes of items, as SQL writes it: genre in ('Drama', 'War') and price between 5 and 10",
  schema: { type: 'string', maxLength: 1000 },
};

const itemFields = {
  n,
  deny: ids('items that are not recommended'),
  allow: ids('the only items that may be recommended'),
  filter,
  coldItems: choice(
    'items without ratings, whose factors follow from their attributes: recommended like others, or never',
    ...listParams.coldItems.choices,
  ),
};

const unknownUsers = choice(
  'the answer for a user that the model does not know: an error 404, or the items with the most ratings',
  'error',
  'popular',
);

const users: Field<readonly Id[]> = {
  describe: 'ids of users',
  schema: { type: 'array', minItems: 1, maxItems: MOST_USERS, items: idSchema },
  required: true,
};

const rating: Field<number | undefined> = {
  describe: 'the rating; only a model of implicit data may leave it out',
  schema: { type: 'number' },
};

const ratings: Field<readonly RatedItem[]> = {
  describe: "a user's ratings",
  schema: {
    type: 'array',
    minItems: 1,
    maxItems: MOST_LISTED,
    items: schemaOf({ item: id('id of the item'), rating }),
  },
  required: true,
};

/** What is known of a user given by ratings, for a model with attributes of users. */
const drawnTo: {
  readonly user: Field<Id | undefined>;
  readonly attributes: Field<SentRow | undefined>;
} = {
  user: {
    describe: 'the id of a user who was added, to whose attributes the user is drawn; others are no error',
    schema: idSchema,
  },
  attributes: {
    describe: 'attributes of the user by the names that /model has, in place of those of the field user',
    schema: { type: 'object', additionalProperties: true },
  },
};

const pairFields = { user: id('id of the user'), item: id('id of the item') };

const pairs: Field<readonly FieldValues<typeof pairFields>[]> = {
  describe: 'pairs of a user and an item',
  schema: { type: 'array', minItems: 1, maxItems: MOST_LISTED, items: schemaOf(pairFields) },
  required: true,
};

const similarFields = {
  n,
  similarity: choice('cosine of the factors, or their product', ...similarParams.similarity.choices),
};

const number = { type: 'number' };
const name = { name: { type: 'string' } };

/** The schema of the recommendations for one user. */
const recommendationsSchema = (user: JsonObject) =>
  answerSchema(
    {
      user,
      known: { type: 'boolean' },
      items: listOf(answerSchema({ item: idSchema, score: number }, name)),
      short: { type: 'boolean', description: 'there are fewer than n' },
      unknownItems: { type: 'integer', description: 'ids of deny and allow that the model does not know' },
    },
    { fallback: { type: 'string', enum: ['popular'] } },
  );

const recommend = defineRoute({
  method: 'GET',
  path: '/recommend/{user}',
  summary: 'The best items of one user',
  query: { ...itemFields, unknownUsers },
  answer: recommendationsSchema(idSchema),
  respond: ({ path, query, signal }, loaded) => recommendTo(loaded, path.user, { ...query, signal }),
});

const recommendMany = defineRoute({
  method: 'POST',
  path: '/recommend',
  summary: 'The best items of several users',
  body: { users, ...itemFields, unknownUsers },
  answer: answerSchema({ recommendations: listOf(recommendationsSchema(idSchema)) }),
  respond: async ({ body, signal }, loaded) => {
    const { n: most, deny = [], allow = [], unknownUsers: policy } = body;
    const entries = most + deny.length + allow.length;
    if (body.users.length > 1 && body.users.length * entries > MOST_WORK)
      throw new UsageError(
        'the number of users times n and the ids of deny and allow must be at most 100,000, ' +
          `got ${body.users.length} times ${entries}`,
      );
    if (policy === 'error') for (const user of body.users) requireKnown(loaded, 'user', user);
    const work = body.users.map((user) => recommendTo(loaded, user, { ...body, signal }));
    return { recommendations: await Promise.all(work) };
  },
});

type Asked = FieldValues<typeof itemFields & { unknownUsers: typeof unknownUsers }> & {
  readonly signal: AbortSignal;
};

async function recommendTo(loaded: LoadedModel, user: Id, asked: Asked): Promise<object> {
  const { n: most, deny, allow, coldItems, unknownUsers: policy, signal } = asked;
  if (policy === 'error') requireKnown(loaded, 'user', user);
  const { model, exclude, names, index } = loaded;
  const filter = filterOf(loaded, asked.filter);
  const options = { exclude, filter, names, index, deny, allow, coldItems, signal };
  return forJson(loaded, await model.recommend(user, most, { ...options, unknownUsers: policy }));
}

/** Recommendations with ids that JSON has. */
function forJson(loaded: LoadedModel, found: UserRecommendations): object {
  const [userId, itemId] = [idsForJson(loaded, 'user'), idsForJson(loaded, 'item')];
  return {
    ...found,
    user: found.user === null ? null : userId(found.user),
    items: found.items.map((one) => ({ ...one, item: itemId(one.item) })),
  };
}

const foldIn = defineRoute({
  method: 'POST',
  path: '/fold-in',
  summary: 'The best items of a user who is given by ratings and need not be in the model',
  body: {
    ratings,
    ...drawnTo,
    ...itemFields,
    unknownUsers: choice(
      'the answer if the model knows no item of the ratings: an error 404, or the items with the most ratings',
      'error',
      'popular',
    ),
  },
  answer: recommendationsSchema({ type: 'null' }),
  respond: async ({ body, signal }, loaded) => {
    const { ratings: rated, user, attributes, n: most, deny, allow, coldItems, unknownUsers: policy } = body;
    const { model, names, index } = loaded;
    const filter = filterOf(loaded, body.filter);
    const options = { filter, names, index, deny, allow, coldItems, signal };
    const found = await model.recommend({ ratings: rated, user, attributes }, most, {
      ...options,
      unknownUsers: policy === 'error' ? 'empty' : policy,
    });
    if (policy === 'error' && !found.known) throw noneKnown();
    return forJson(loaded, found);
  },
});

const explain = defineRoute({
  method: 'POST',
  path: '/explain',
  summary: "The share of each of a user's ratings in the score of an item",
  body: { item: id('the item whose score is explained'), ratings, ...drawnTo },
  answer: answerSchema(
    {
      item: idSchema,
      score: number,
      base: { type: 'number', description: 'the part that is the same for all users' },
      contributions: listOf(answerSchema({ item: idSchema, rating: number, share: number }, name)),
      unknownItems: { type: 'integer' },
    },
    {
      ...name,
      modelScore: { type: 'number', description: 'with the factors that the model has of the user' },
      userAttributes: {
        type: 'number',
        description: "the share of the user's attributes, or of a user without, if the model has some",
      },
      itemAttributes: {
        ...listOf(answerSchema({ column: { type: 'string' }, value: { type: 'string' }, share: number })),
        description:
          "what the item's attributes add to a score by attributes alone, if the server has them: " +
          'by --item-attributes or POST /items',
      },
    },
  ),
  respond: async ({ body, signal }, loaded) => {
    const { item, ...user } = body;
    requireKnown(loaded, 'item', item);
    const { names } = loaded;
    const { known, ...found } = await loaded.model.explain(user, item, { names, signal });
    if (!known) throw noneKnown();
    const itemId = idsForJson(loaded, 'item');
    return {
      ...found,
      item: itemId(found.item),
      contributions: found.contributions.map((one) => ({ ...one, item: itemId(one.item) })),
    };
  },
});

function noneKnown(): HttpError {
  return new HttpError('NOT_FOUND', 'the model knows no item of the ratings');
}

/** Similar items and similar users, for an id in the path and for any id in the body. */
const similar = (['GET', 'POST'] as const).flatMap((method) =>
  (['item', 'user'] as const).map((side) => {
    const row = answerSchema({ [side]: idSchema, similarity: number }, name);
    const path = `/similar-${side}s`;
    const answer = answerSchema({ [side]: idSchema, similar: listOf(row) });
    if (method === 'GET')
      return defineRoute({
        method,
        path: `${path}/{${side}}`,
        summary: `The ${side}s most similar to ${side === 'item' ? 'an item' : 'a user'}`,
        query: similarFields,
        answer,
        respond: (input, loaded) => similarTo(loaded, side, input.path[side], input.query, input.signal),
      });
    return defineRoute({
      method,
      path,
      summary: 'The same for any id',
      body: { [side]: id(`id of the ${side}`), ...similarFields },
      answer,
      respond: ({ body, signal }, loaded) => {
        const { [side]: given, ...asked } = body as SimilarAsked & Readonly<Record<typeof side, Id>>;
        return similarTo(loaded, side, given, asked, signal);
      },
    });
  }),
);

type SimilarAsked = FieldValues<typeof similarFields>;

async function similarTo(
  loaded: LoadedModel,
  side: 'user' | 'item',
  given: Id,
  { n: most, similarity }: SimilarAsked,
  signal: AbortSignal,
): Promise<object> {
  requireKnown(loaded, side, given);
  const names = side === 'item' ? loaded.names : undefined;
  // A model may have an index of one kind alone.
  const kind = similarity === 'cosine' ? 'similar' : 'recommend';
  const index = side === 'item' && loaded.model.indexed.includes(kind) ? loaded.index : 'auto';
  const found = await loaded.model.similar(given, most, { side, similarity, signal, names, index });
  const jsonId = idsForJson(loaded, side);
  return {
    [side]: jsonId(given),
    similar: found.similar.map((one) => ({ ...one, [side]: jsonId('item' in one ? one.item : one.user) })),
  };
}

const predictionSchema = (prediction: JsonObject) =>
  answerSchema({ user: idSchema, item: idSchema, prediction });

const predict = defineRoute({
  method: 'GET',
  path: '/predict/{user}/{item}',
  summary: 'The predicted rating of one user and item',
  answer: predictionSchema(number),
  respond: async ({ path: { user, item } }, loaded) => {
    requireKnown(loaded, 'user', user);
    requireKnown(loaded, 'item', item);
    return predictionOf(loaded, { user, item });
  },
});

const predictMany = defineRoute({
  method: 'POST',
  path: '/predict',
  summary: 'The predicted ratings of several pairs; null for a user or item that the model does not know',
  body: { pairs },
  answer: answerSchema({ predictions: listOf(predictionSchema({ type: ['number', 'null'] })) }),
  respond: async ({ body }, loaded) => ({
    predictions: body.pairs.map((pair) => predictionOf(loaded, pair)),
  }),
});

function predictionOf(loaded: LoadedModel, { user, item }: FieldValues<typeof pairFields>): object {
  return {
    user: idsForJson(loaded, 'user')(user),
    item: idsForJson(loaded, 'item')(item),
    prediction: loaded.model.score(user, item) ?? null,
  };
}

/** Adds items, or users, that attributes describe. */
const add = (['item', 'user'] as const).map((side) =>
  defineRoute({
    method: 'POST',
    path: `/${side}s`,
    summary: `Adds ${side}s by their attributes, without training, for all clients`,
    writes: true,
    body: {
      [`${side}s`]: {
        describe: `objects with an id and the attributes of the training, which /model names; an id again replaces the attributes`,
        schema: {
          type: 'array',
          minItems: 1,
          maxItems: MOST_LISTED,
          items: { type: 'object', additionalProperties: true },
        },
        required: true,
      } satisfies Field<readonly SentRow[]>,
    },
    answer: answerSchema({
      added: { type: 'integer', description: 'new ones' },
      changed: { type: 'integer', description: 'known ones without ratings, with other attributes now' },
      kept: { type: 'integer', description: 'known ones with ratings, which do not change' },
      bare: { type: 'integer', description: 'of all, those without any attribute that the training knew' },
      [`${side}s`]: { type: 'integer', description: 'all of the model' },
    }),
    respond: async ({ body, signal }, _, models) => {
      const rows = (body as Readonly<Record<string, readonly SentRow[]>>)[`${side}s`];
      const { counts, loaded } = await models.add(side, rows, signal);
      const { itemCount, userCount } = loaded.model;
      const { added, changed, kept, bare } = counts;
      return { added, changed, kept, bare, [`${side}s`]: side === 'item' ? itemCount : userCount };
    },
  }),
);

const attributesSchema = answerSchema({
  id: { type: 'string', description: 'the field of the id' },
  columns: listOf(answerSchema({ ...name, kind: { type: 'string' } })),
});

const formSchema = { type: 'string', enum: ['integer', 'string'] };

export const describeModel = defineRoute({
  method: 'GET',
  path: '/model',
  summary: 'The model that answers now',
  answer: answerSchema({
    version: { type: 'string', description: 'changes when another model is loaded' },
    loadedAt: { type: 'string', format: 'date-time' },
    rank: { type: 'integer' },
    users: { type: 'integer' },
    items: { type: 'integer' },
    ids: answerSchema({ user: formSchema, item: formSchema }),
    attributes: {
      ...answerSchema({}, { user: attributesSchema, item: attributesSchema }),
      description: 'by which items and users are added',
    },
  }),
  respond: async (_, { model, forms, version, loadedAt }) => {
    const form = (side: 'user' | 'item') => (forms[side] === 'number' ? 'integer' : 'string');
    return {
      version,
      loadedAt: loadedAt.toISOString(),
      rank: model.rank,
      users: model.userCount,
      items: model.itemCount,
      ids: { user: form('user'), item: form('item') },
      attributes: Object.fromEntries(
        Object.entries(model.attributes ?? {}).map(([side, { id: field, encoding }]) => [
          side,
          { id: field, columns: encoding.columns.map(({ name: column, kind }) => ({ name: column, kind })) },
        ]),
      ),
    };
  },
});

/** All routes that ask the model. */
export const routes: readonly Route[] = [
  recommend,
  recommendMany,
  foldIn,
  explain,
  ...similar,
  predict,
  predictMany,
  ...add,
  describeModel,
];
