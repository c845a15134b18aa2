import type { Id, JsonObject, UserRecommendations } from '../../../index.ts';
import { UsageError } from '../../../engine/errors.ts';
import {
  answerSchema,
  choiceField,
  countField,
  type Field,
  idSchema,
  idsField,
  listOf,
  readId,
  short,
} from '../fields.ts';
import { filterField, filterOf } from '../item-filter.ts';
import { idsForJson, type LoadedModel, requireKnown } from '../loaded-model.ts';
import { defineRoute } from '../route.ts';

/** Most users of one request. */
const MOST_USERS = 1000;

/** Most users of one request times the entries of its lists, which are read while all other requests wait. */
const MOST_WORK = 100_000;

export const itemFields = {
  n: countField,
  deny: idsField('items that are not recommended'),
  allow: idsField('the only items that may be recommended'),
  filter: filterField,
};

const unknownUsers = choiceField(
  'the answer for a user that the model does not know: an error 404, or the items with the most ratings',
  ['error', 'popular'],
  'error',
);

const users: Field<readonly Id[]> = {
  describe: 'ids of users',
  schema: { type: 'array', minItems: 1, maxItems: MOST_USERS, items: idSchema },
  required: true,
  read: (given, name) => {
    if (Array.isArray(given) && given.length > 0 && given.length <= MOST_USERS)
      return given.map((id) => readId(id, name));
    throw new UsageError(`${name} must be a list of 1 to 1,000 ids, got ${short(given)}`);
  },
};

/** The schema of the recommendations for one user. */
export const recommendationsSchema = (user: JsonObject) =>
  answerSchema(
    {
      user,
      known: { type: 'boolean' },
      items: listOf(
        answerSchema({ item: idSchema, score: { type: 'number' } }, { name: { type: 'string' } }),
      ),
      short: { type: 'boolean', description: 'there are fewer than n' },
      unknownItems: { type: 'integer', description: 'ids of deny and allow that the model does not know' },
    },
    { fallback: { type: 'string', enum: ['popular'] } },
  );

export const recommend = defineRoute({
  method: 'GET',
  path: '/recommend/{user}',
  summary: 'The best items of one user',
  query: { ...itemFields, unknownUsers },
  body: {},
  answer: recommendationsSchema(idSchema),
  respond: async ({ path, query, signal }, loaded) => recommendTo(loaded, path.user, { ...query, signal }),
});

export const recommendMany = defineRoute({
  method: 'POST',
  path: '/recommend',
  summary: 'The best items of several users',
  query: {},
  body: { users, ...itemFields, unknownUsers },
  answer: answerSchema({ recommendations: listOf(recommendationsSchema(idSchema)) }),
  respond: async ({ body, signal }, loaded) => {
    const { n, deny = [], allow = [], unknownUsers: policy } = body;
    const entries = n + deny.length + allow.length;
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

interface Asked {
  readonly n: number;
  readonly deny: readonly Id[] | undefined;
  readonly allow: readonly Id[] | undefined;
  readonly filter: string | undefined;
  readonly unknownUsers: 'error' | 'popular';
  readonly signal: AbortSignal;
}

async function recommendTo(loaded: LoadedModel, user: Id, asked: Asked): Promise<object> {
  const { n, deny, allow, unknownUsers: policy, signal } = asked;
  if (policy === 'error') requireKnown(loaded, 'user', user);
  const { model, exclude, names, index } = loaded;
  const filter = filterOf(loaded, asked.filter);
  const options = { exclude, filter, names, index, deny, allow, unknownUsers: policy, signal };
  return forJson(loaded, await model.recommend(user, n, options));
}

/** Recommendations with ids that JSON has. */
export function forJson(loaded: LoadedModel, found: UserRecommendations): object {
  const [userId, itemId] = [idsForJson(loaded, 'user'), idsForJson(loaded, 'item')];
  return {
    ...found,
    user: found.user === null ? null : userId(found.user),
    items: found.items.map((one) => ({ ...one, item: itemId(one.item) })),
  };
}
