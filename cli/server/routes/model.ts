import { answerSchema } from '../fields.ts';
import { defineRoute } from '../route.ts';

const formSchema = { type: 'string', enum: ['integer', 'string'] };

export const describeModel = defineRoute({
  method: 'GET',
  path: '/model',
  summary: 'The model that answers now',
  query: {},
  body: {},
  answer: answerSchema({
    version: { type: 'string', description: 'changes when another model is loaded' },
    loadedAt: { type: 'string', format: 'date-time' },
    rank: { type: 'integer' },
    users: { type: 'integer' },
    items: { type: 'integer' },
    ids: answerSchema({ user: formSchema, item: formSchema }),
  }),
  respond: async (_, loaded) => {
    const { model, forms, version, loadedAt } = loaded;
    const form = (side: 'user' | 'item') => (forms[side] === 'number' ? 'integer' : 'string');
    return {
      version,
      loadedAt: loadedAt.toISOString(),
      rank: model.rank,
      users: model.userCount,
      items: model.itemCount,
      ids: { user: form('user'), item: form('item') },
    };
  },
});
