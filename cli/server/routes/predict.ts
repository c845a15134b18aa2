import { UsageError } from '../../../engine/errors.ts';
import type { Id, JsonObject } from '../../../index.ts';
import {
  answerSchema,
  type Field,
  idField,
  idSchema,
  listOf,
  readFields,
  schemaOf,
  short,
} from '../fields.ts';
import { idsForJson, type LoadedModel, requireKnown } from '../loaded-model.ts';
import { defineRoute } from '../route.ts';

/** Most pairs of one request. */
const MOST_PAIRS = 10_000;

interface Pair {
  readonly user: Id;
  readonly item: Id;
}

const pairFields = { user: idField('id of the user'), item: idField('id of the item') };

const pairs: Field<readonly Pair[]> = {
  describe: 'pairs of a user and an item',
  schema: {
    type: 'array',
    minItems: 1,
    maxItems: MOST_PAIRS,
    items: schemaOf(pairFields),
  },
  required: true,
  read: (given, name) => {
    if (!Array.isArray(given) || given.length === 0 || given.length > MOST_PAIRS)
      throw new UsageError(`${name} must be a list of 1 to 10,000 pairs, got ${short(given)}`);
    return given.map((pair, at) => readFields(pairFields, pair, `pair ${at + 1}`));
  },
};

const predictionSchema = (prediction: JsonObject) =>
  answerSchema({ user: idSchema, item: idSchema, prediction });

export const predict = defineRoute({
  method: 'GET',
  path: '/predict/{user}/{item}',
  summary: 'The predicted rating of one user and item',
  query: {},
  body: {},
  answer: predictionSchema({ type: 'number' }),
  respond: async ({ path: { user, item } }, loaded) => {
    requireKnown(loaded, 'user', user);
    requireKnown(loaded, 'item', item);
    return predictionOf(loaded, { user, item });
  },
});

export const predictMany = defineRoute({
  method: 'POST',
  path: '/predict',
  summary: 'The predicted ratings of several pairs; null for a user or item that the model does not know',
  query: {},
  body: { pairs },
  answer: answerSchema({ predictions: listOf(predictionSchema({ type: ['number', 'null'] })) }),
  respond: async ({ body }, loaded) => ({
    predictions: body.pairs.map((pair) => predictionOf(loaded, pair)),
  }),
});

function predictionOf(loaded: LoadedModel, { user, item }: Pair): object {
  return {
    user: idsForJson(loaded, 'user')(user),
    item: idsForJson(loaded, 'item')(item),
    prediction: loaded.model.score(user, item) ?? null,
  };
}
