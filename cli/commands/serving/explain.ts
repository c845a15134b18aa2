import { textTable } from '../../../api/inspect/text-table.ts';
import { UsageError } from '../../../engine/errors.ts';
import { counted } from '../../../engine/format.ts';
import type { Explanation } from '../../../index.ts';
import { withAttributeFiles } from '../../options/data/attribute-options.ts';
import { columnOptions, readOptions } from '../../options/data/data-options.ts';
import { checkNameFlags, nameOptions, readNames } from '../../options/data/name-options.ts';
import { decimal, requiredText, text, wholeNumber } from '../../options/kinds.ts';
import { machineOptions, parquetBackendOption } from '../../options/machine-options.ts';
import { grouped } from '../../options/option.ts';
import { commonOptions } from '../../options/output-options.ts';
import { facts, shownName } from '../../report/facts.ts';
import { jsonId } from '../../report/recommendations.ts';
import { openSession, readNamed } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder, words } from '../command.ts';

export const command = defineCommand({
  summary: "Show what each of a user's ratings contributes to a score",
  positionals: [
    modelFolder,
    words('ratings', "ratings that the user's are among, such as those trained on, with the model's columns"),
  ],
  options: {
    ...grouped('Required:', {
      user: requiredText('id of the user, whom the model need not know'),
      item: requiredText('id of the item whose score is explained'),
    }),
    n: wholeNumber('ratings that the table shows, the largest contributions first; --json has all', {
      least: 1,
      fallback: 10,
    }),
    regParam: decimal('λ of the user', { least: 0, defaultText: "the training's" }),
    ...grouped('Attributes:', {
      itemAttributes: text(
        "attributes of items, a row for each, with the training's columns: what the item's add to the score",
      ),
      userAttributes: text('the same for users, to whose attributes the user is drawn'),
    }),
    ...nameOptions,
    ...columnOptions,
    ...readOptions,
    ...machineOptions,
    parquetBackend: parquetBackendOption,
    ...commonOptions,
  },
  examples: [
    ['explain model ratings.parquet --user 7 --item 1196', 'the ratings that lead to a recommendation'],
  ],
  epilog:
    "The user is solved exactly from the ratings, by the equations of the training; the score is the base (the mean and the item's bias) and the shares of all ratings. It differs from the model's own where training was not exact or had other ratings.",
  run: async ({ values, positionals }, { signal, onEvent }) => {
    const { user, item, n, regParam } = values;
    checkNameFlags(values);
    await using session = await openSession(values, { signal });
    const stored = await session.loadModel(positionals.model[0], { signal, onEvent });
    const files = { item: values.itemAttributes, user: values.userAttributes };
    const model = await withAttributeFiles(stored, files, { signal, onEvent });
    if (!model.hasItem(item)) throw new UsageError(`the model has no item ${item}`);
    const ratings = await readNamed(session, positionals.ratings, values);
    const names = await readNames(session, values, { signal, onEvent }, { model });
    const explained = await model.explain({ user, ratings }, item, { regParam, names, signal, onEvent });
    const { known, name, score, modelScore, base, contributions, unknownItems } = explained;
    const { userAttributes, itemAttributes } = explained;
    if (!known)
      throw new UsageError(`the model knows no item that user ${user} rated`, {
        advice: 'There is nothing to explain',
      });
    const shares = contributions.map(({ item: own, name: title, rating, share }) => ({
      item: jsonId(own, model.idForms.item),
      ...(names ? { name: title ?? null } : {}),
      rating,
      share,
    }));
    return {
      json: {
        command: 'explain',
        user: jsonId(user, model.idForms.user),
        item: jsonId(item, model.idForms.item),
        ...(names ? { name: name ?? null } : {}),
        score,
        modelScore: modelScore ?? null,
        base,
        ...(model.attributes && {
          userAttributes: userAttributes ?? null,
          itemAttributes: itemAttributes?.map((one) => ({ ...one })) ?? null,
        }),
        contributions: shares,
        unknownItems,
      },
      text: [
        facts([
          [
            'score',
            `${score.toFixed(4)} of item ${item}${name === undefined ? '' : ` (${shownName(name)})`} for user ${user}`,
          ],
          ["the model's own", modelScore?.toFixed(4)],
          ['base', base === 0 ? undefined : `${base.toFixed(4)}: the mean and the item's bias`],
          ["user's attributes", userAttributes?.toFixed(4)],
          [
            'ratings',
            `${counted(contributions.length, 'rating')}${unknownItems === 0 ? '' : `; ${counted(unknownItems, 'rating')} of unknown items`}`,
          ],
        ]),
        shareTable(contributions, n, names !== undefined),
        ...(model.attributes?.item ? ['', attributeTable(itemAttributes, n)] : []),
      ].join('\n'),
    };
  },
});

/** What the item's attributes add, or why that is unknown. */
function attributeTable(shares: Explanation['itemAttributes'], n: number): string {
  if (shares === undefined)
    return "The model does not store the item's attributes: give them by --item-attributes.";
  if (shares.length === 0) return 'The item has no attribute that the training knew.';
  const nameOf = ({ column, value }: (typeof shares)[number]) =>
    shownName(value === '' ? column : `${column} = ${value}`);
  return textTable(
    { head: ['because of', 'share'], colAligns: ['left', 'right'] },
    shares.slice(0, n).map((one) => [nameOf(one), one.share.toFixed(4)]),
  );
}

function shareTable(contributions: Explanation['contributions'], n: number, isNamed: boolean): string {
  const ifNamed = <T>(cell: T) => (isNamed ? [cell] : []);
  const rows = contributions
    .slice(0, n)
    .map(({ item, name, rating, share }) => [
      String(item),
      ...ifNamed(shownName(name)),
      String(rating),
      share.toFixed(4),
    ]);
  const rest = contributions.slice(n).reduce((sum, { share }) => sum + share, 0);
  if (contributions.length > n)
    rows.push([counted(contributions.length - n, 'other'), ...ifNamed(''), '', rest.toFixed(4)]);
  return textTable(
    {
      head: ['item', ...ifNamed('name'), 'rating', 'share'],
      colAligns: ['right', ...ifNamed('left' as const), 'right', 'right'],
    },
    rows,
  );
}
