import type { Id } from '../../../index.ts';
import { choiceField, countField, idSchema } from '../fields.ts';
import { idsForJson, type LoadedModel, requireKnown } from '../loaded-model.ts';
import { defineRoute } from '../route.ts';

const query = {
  n: countField,
  similarity: choiceField('cosine of the factors, or their product', ['cosine', 'dot'], 'cosine'),
};

const schemaOf = (side: 'user' | 'item') => ({
  type: 'object',
  properties: {
    [side]: idSchema,
    similar: {
      type: 'array',
      items: {
        type: 'object',
        properties: { [side]: idSchema, similarity: { type: 'number' }, name: { type: 'string' } },
      },
    },
  },
});

export const similarItems = defineRoute({
  method: 'GET',
  path: '/similar-items/{item}',
  summary: 'The items most similar to an item',
  query,
  body: {},
  answer: schemaOf('item'),
  respond: ({ path, query: asked, signal }, loaded) =>
    similarTo(loaded, 'item', path.item, { ...asked, signal }),
});

export const similarUsers = defineRoute({
  method: 'GET',
  path: '/similar-users/{user}',
  summary: 'The users most similar to a user',
  query,
  body: {},
  answer: schemaOf('user'),
  respond: ({ path, query: asked, signal }, loaded) =>
    similarTo(loaded, 'user', path.user, { ...asked, signal }),
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
    [side]: jsonId(found.id),
    similar: found.similar.map(({ id: one, ...rest }) => ({ [side]: jsonId(one), ...rest })),
  };
}
