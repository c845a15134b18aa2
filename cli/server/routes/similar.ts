import type { Id } from '../../../index.ts';
import { answerSchema, choiceField, countField, idField, idSchema, listOf } from '../fields.ts';
import { idsForJson, type LoadedModel, requireKnown } from '../loaded-model.ts';
import { defineRoute } from '../route.ts';

const query = {
  n: countField,
  similarity: choiceField('cosine of the factors, or their product', ['cosine', 'dot'], 'cosine'),
};

const schemaOfSide = (side: 'user' | 'item') =>
  answerSchema({
    [side]: idSchema,
    similar: listOf(
      answerSchema({ [side]: idSchema, similarity: { type: 'number' } }, { name: { type: 'string' } }),
    ),
  });

export const similarItems = defineRoute({
  method: 'GET',
  path: '/similar-items/{item}',
  summary: 'The items most similar to an item',
  query,
  body: {},
  answer: schemaOfSide('item'),
  respond: ({ path, query: asked, signal }, loaded) =>
    similarTo(loaded, 'item', path.item, { ...asked, signal }),
});

export const similarUsers = defineRoute({
  method: 'GET',
  path: '/similar-users/{user}',
  summary: 'The users most similar to a user',
  query,
  body: {},
  answer: schemaOfSide('user'),
  respond: ({ path, query: asked, signal }, loaded) =>
    similarTo(loaded, 'user', path.user, { ...asked, signal }),
});

export const similarToItem = defineRoute({
  method: 'POST',
  path: '/similar-items',
  summary: 'The same for any id',
  query: {},
  body: { item: idField('id of the item'), ...query },
  answer: schemaOfSide('item'),
  respond: ({ body: { item, ...asked }, signal }, loaded) =>
    similarTo(loaded, 'item', item, { ...asked, signal }),
});

export const similarToUser = defineRoute({
  method: 'POST',
  path: '/similar-users',
  summary: 'The same for any id',
  query: {},
  body: { user: idField('id of the user'), ...query },
  answer: schemaOfSide('user'),
  respond: ({ body: { user, ...asked }, signal }, loaded) =>
    similarTo(loaded, 'user', user, { ...asked, signal }),
});

interface Asked {
  readonly n: number;
  readonly similarity: 'cosine' | 'dot';
  readonly signal: AbortSignal;
}

async function similarTo(
  loaded: LoadedModel,
  side: 'user' | 'item',
  id: Id,
  { n, similarity, signal }: Asked,
): Promise<object> {
  requireKnown(loaded, side, id);
  const names = side === 'item' ? loaded.names : undefined;
  // A model may have an index of one kind alone.
  const kind = similarity === 'cosine' ? 'similar' : 'recommend';
  const index = side === 'item' && loaded.model.indexed.includes(kind) ? loaded.index : 'auto';
  const found = await loaded.model.similar(id, n, { side, similarity, signal, names, index });
  const jsonId = idsForJson(loaded, side);
  return {
    [side]: jsonId(id),
    similar: found.similar.map((one) => ({ ...one, [side]: jsonId('item' in one ? one.item : one.user) })),
  };
}
