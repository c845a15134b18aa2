import type { Dataset } from '../../../api/dataset.ts';
import { countParam, similarParams } from '../../../api/option-params.ts';
import type { RunOptions } from '../../../api/run-session.ts';
import { UsageError } from '../../../engine/errors.ts';
import type { Model } from '../../../index.ts';
import { indexOption } from '../../options/data/data-options.ts';
import { checkNameFlags, nameOptions, readNames } from '../../options/data/name-options.ts';
import { flagOf, flagsOf, listOf } from '../../options/kinds.ts';
import { machineOptions } from '../../options/machine-options.ts';
import { refuseFlags } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';
import { namesAbove } from '../../report/facts.ts';
import {
  type Recommendation,
  recommendationRows,
  recommendationTable,
  withItemNames,
} from '../../report/recommendations.ts';
import { openSession } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder } from '../command.ts';

const options = {
  item: listOf(
    'ids of items, separated by commas; an id with a comma in quotes, or the flag again for each id',
  ),
  user: listOf('ids of users, written as for --item'),
  n: flagOf({ ...countParam, help: 'neighbours of each, 1 to 1,000' }),
  ...flagsOf(similarParams),
  index: indexOption,
  ...nameOptions,
  ...machineOptions,
  ...commonOptions,
};

export const command = defineCommand({
  summary: 'Find the items or users most similar to given ones',
  positionals: [modelFolder],
  options,
  examples: [
    ['similar model --item 1196', 'the ten items most similar to one'],
    ['similar model --item 1196 --item-names movies.csv', 'the same with titles'],
    ['similar model --user 7,8 --n 3', 'three neighbours for each of two users'],
  ],
  run: async ({ values, given, positionals }, { signal, onEvent }) => {
    const { item, user, n, similarity, index } = values;
    if ((item === undefined) === (user === undefined))
      throw new UsageError('give either --item or --user', { advice: 'Name the ids of one side' });
    checkNameFlags(values);
    if (user !== undefined) {
      const fault = 'cannot be used with --user';
      refuseFlags(given, ['itemNames'], fault, 'Leave it out: users have no names');
      refuseFlags(given, ['index'], fault, 'Leave it out: an index has items');
    }
    const [side, ids] = item === undefined ? (['user', user ?? []] as const) : (['item', item] as const);
    await using session = await openSession(values, { signal });
    const model = await session.loadModel(positionals.model[0], { signal, onEvent });
    const found =
      side === 'item'
        ? model.similarItems(ids, n, { similarity, index })
        : model.similarUsers(ids, n, { similarity });
    const unknown = ids.filter((id) => !(side === 'item' ? model.hasItem(id) : model.hasUser(id)));
    const names = await readNames(session, values, { signal, onEvent }, { model });
    const rows = withItemNames(await collect(found, model.idForms[side], { signal, onEvent }), names);
    const neighbours = rows.map((row) => ({
      [side]: row.user,
      rank: row.rank,
      similar: row.item,
      ...(names ? { name: row.name ?? null } : {}),
      similarity: row.prediction,
    }));
    return {
      json: { command: 'similar', side, n, similarity, unknown, neighbours },
      text:
        namesAbove(
          rows.map(({ user: own }) => own),
          names,
        ) + recommendationTable(rows, [side, 'rank', `similar ${side}`, similarity]),
    };
  },
});

async function collect(
  found: Dataset,
  form: Model['idForms']['user'],
  options: RunOptions,
): Promise<Recommendation[]> {
  const rows: Recommendation[] = [];
  for await (const batch of await found.stream(options))
    rows.push(...recommendationRows(batch, { user: form, item: form }));
  return rows;
}
