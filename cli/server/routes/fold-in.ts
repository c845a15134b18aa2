import type { RatedItem } from '../../../api/serving/fold-in-request.ts';
import { UsageError } from '../../../engine/errors.ts';
import { HttpError } from '../http-error.ts';
import {
  answerSchema,
  choiceField,
  type Field,
  idField,
  idSchema,
  listOf,
  readFields,
  schemaOf,
  short,
} from '../fields.ts';
import { filterOf } from '../item-filter.ts';
import { idsForJson, requireKnown } from '../loaded-model.ts';
import { defineRoute } from '../route.ts';
import { forJson, itemFields, recommendationsSchema } from './recommend.ts';

/** Most ratings of one user. */
const MOST_RATINGS = 10_000;

const optionalNumber: Field<number | undefined> = {
  describe: 'the rating; only a model of implicit data may leave it out',
  schema: { type: 'number' },
  read: (given, name) => {
    if (given === undefined || (typeof given === 'number' && Number.isFinite(given))) return given;
    throw new UsageError(`${name} must be a number, got ${short(given)}`);
  },
};

const ratedItem = { item: idField('id of the item'), rating: optionalNumber };

const ratings: Field<readonly RatedItem[]> = {
  describe: "a user's ratings",
  schema: {
    type: 'array',
    minItems: 1,
    maxItems: MOST_RATINGS,
    items: schemaOf(ratedItem),
  },
  required: true,
  read: (given, name) => {
    if (!Array.isArray(given) || given.length === 0 || given.length > MOST_RATINGS)
      throw new UsageError(`${name} must be a list of 1 to 10,000 ratings, got ${short(given)}`);
    return given.map((one, at): RatedItem => {
      const { item, rating } = readFields(ratedItem, one, `rating ${at + 1}`);
      return rating === undefined ? { item } : { item, rating };
    });
  },
};

export const foldIn = defineRoute({
  method: 'POST',
  path: '/fold-in',
  summary: 'The best items of a user who is given by ratings and need not be in the model',
  query: {},
  body: {
    ratings,
    ...itemFields,
    unknownUsers: choiceField(
      'the answer if the model knows no item of the ratings: an error 404, or the items with the most ratings',
      ['error', 'popular'],
      'error',
    ),
  },
  answer: recommendationsSchema({ type: 'null' }),
  respond: async ({ body, signal }, loaded) => {
    const { n, deny, allow, unknownUsers } = body;
    const { model, names, index } = loaded;
    if (unknownUsers === 'error') requireAnyKnown(loaded.model.hasItem.bind(model), body.ratings);
    const filter = filterOf(loaded, body.filter);
    const options = { filter, names, index, deny, allow, unknownUsers, signal };
    return forJson(loaded, await model.recommend({ ratings: body.ratings }, n, options));
  },
});

export const explain = defineRoute({
  method: 'POST',
  path: '/explain',
  summary: "The share of each of a user's ratings in the score of an item",
  query: {},
  body: { item: idField('the item whose score is explained'), ratings },
  answer: answerSchema(
    {
      item: idSchema,
      score: { type: 'number' },
      base: { type: 'number', description: 'the part that is the same for all users' },
      contributions: listOf(
        answerSchema(
          { item: idSchema, rating: { type: 'number' }, share: { type: 'number' } },
          { name: { type: 'string' } },
        ),
      ),
      unknownItems: { type: 'integer' },
    },
    { name: { type: 'string' } },
  ),
  respond: async ({ body, signal }, loaded) => {
    requireKnown(loaded, 'item', body.item);
    requireAnyKnown((id) => loaded.model.hasItem(id), body.ratings);
    const { known: _, ...found } = await loaded.model.explain(body.ratings, body.item, {
      names: loaded.names,
      signal,
    });
    const itemId = idsForJson(loaded, 'item');
    return {
      ...found,
      item: itemId(found.item),
      contributions: found.contributions.map((one) => ({ ...one, item: itemId(one.item) })),
    };
  },
});

function requireAnyKnown(isKnown: (id: RatedItem['item']) => boolean, rated: readonly RatedItem[]): void {
  if (!rated.some(({ item }) => isKnown(item)))
    throw new HttpError('NOT_FOUND', 'the model knows no item of the ratings');
}
