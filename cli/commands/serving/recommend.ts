import type { Dataset } from '../../../api/dataset.ts';
import { UsageError } from '../../../engine/errors.ts';
import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import type { ItemNames, JsonObject, Model, EventSink, ProgressEvent } from '../../../index.ts';
import { pairColumnOptions, indexOption, readOptions } from '../../options/data/data-options.ts';
import { checkNameFlags, nameOptions, readNames } from '../../options/data/name-options.ts';
import { listOf, text, flagOf, flagsOf } from '../../options/kinds.ts';
import { grouped, type Values, type Options, refuseFlags } from '../../options/option.ts';
import { escapeFormulasOption, writingOptions } from '../../options/output-options.ts';
import { type CheckedSink, openOutput, OUTPUT_DESCRIPTION, summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { namesAbove } from '../../report/facts.ts';
import { nameFlags } from '../../report/name-flags.ts';
import {
  jsonId,
  type Recommendation,
  recommendationRows,
  recommendationTable,
  withItemNames,
} from '../../report/recommendations.ts';
import { openSession, readNamed } from '../../sessions/open-session.ts';
import { type CommandContext, type CommandResult, defineCommand, modelFolder } from '../command.ts';
import { countParam, recommendParams } from '../../../api/option-params.ts';

/** Most users whose recommendations are printed. */
const MOST_PRINTED = 100;

const options = {
  ...grouped('Output:', {
    output: text(`${OUTPUT_DESCRIPTION}; a table is printed without it`),
  }),
  users: listOf(
    'users to find items for: all (the default), or ids, separated by commas; an id with a comma in ' +
      'quotes, or the flag again for each id',
  ),
  items: listOf('find users for items instead: all items, or ids, written as for --users'),
  n: flagOf(countParam),
  exclude: text(
    'ratings whose pairs are not recommended, such as those trained on; a file, a folder or a quoted glob',
  ),
  deny: listOf('ids of items that are never recommended'),
  allow: listOf('ids of the only items that may be recommended'),
  ...flagsOf(recommendParams),
  index: indexOption,
  ...nameOptions,
  ...pairColumnOptions,
  ...readOptions,
  escapeFormulas: escapeFormulasOption,
  ...writingOptions,
};

export const command = defineCommand({
  summary: 'Find the best items for all users or some',
  positionals: [modelFolder],
  options,
  examples: [
    ['recommend model --output recs --exclude ratings/', 'ten new items for every user'],
    ['recommend model --output - --to ndjson', 'for the next program, an object a line'],
    ['recommend model --users 1,2,3 --n 5 --deny 10,11', 'a table for three users, without two items'],
    ['recommend model --users 1 --item-names movies.csv', 'the same with titles'],
    ['recommend model --items all --output fans', 'ten users for every item'],
  ],
  run: async ({ values, given, positionals }, context) => {
    const { output, n, exclude } = values;
    const side = sideOf(values);
    checkNameFlags(values);
    const ids = values[side] === undefined || values[side].join() === 'all' ? 'all' : values[side];
    checkIdle(values, given, side, ids);
    const sink =
      output === undefined ? undefined : await openOutput(output, values, [positionals.model[0], exclude]);
    if (sink === undefined) requireFew(side, ids);
    await using session = await openSession(values, context);
    const model = await session.loadModel(positionals.model[0], {
      signal: context.signal,
      onEvent: context.onEvent,
    });
    const excluded = exclude === undefined ? undefined : await readNamed(session, exclude, values);
    await excluded?.schema();
    const names = await readNames(session, values, context, { model });
    const found = searched(model, side, ids, { ...values, exclude: excluded, names: sink && names });
    const asked: Asked = {
      n,
      side,
      findings: new Findings(context.onEvent, options),
      excluding: excluded !== undefined,
      lists: ids === 'all' ? (side === 'users' ? model.userCount : model.itemCount) : new Set(ids).size,
      unknown: unknownIn(model, side, ids, values),
      forms: model.idForms,
      names,
    };
    // Awaited here, since the session's threads end with this function.
    return output === undefined || sink === undefined
      ? await printed(found, asked, context)
      : await written(found, { output, sink }, asked, context);
  },
});

type RecommendValues = Values<typeof options>;
type Side = 'users' | 'items';
type Ids = 'all' | readonly string[];

/** Throws UsageError for a flag that has no effect with the others. */
function checkIdle(values: RecommendValues, given: ReadonlySet<string>, side: Side, ids: Ids): void {
  const unread = values.exclude === undefined ? Object.keys({ ...pairColumnOptions, ...readOptions }) : [];
  const unwritten = values.output === undefined ? ['codec', 'escapeFormulas', 'force', 'to'] : [];
  if (side === 'items')
    refuseFlags(given, ['deny', 'allow', 'coldItems'], 'acts only with --users', 'Leave it out');
  if (side === 'items' || ids === 'all')
    refuseFlags(given, ['unknownUsers'], 'acts only with ids of users', 'Leave it out');
  if (side === 'items') refuseFlags(given, ['index'], 'acts only with --users', 'Leave it out');
  refuseFlags(given, unwritten, 'acts only with --output', 'Leave it out, or say where to write');
  refuseFlags(given, unread, 'acts only with --exclude', 'Leave it out; --to is the format of the output');
}

/** Throws UsageError if there are too many lists to print. */
function requireFew(side: Side, ids: Ids): void {
  if (ids !== 'all' && ids.length <= MOST_PRINTED) return;
  throw new UsageError(
    `--output is needed for ${ids === 'all' ? `all ${side}` : `more than ${MOST_PRINTED} ${side}`}`,
    { advice: `Give --output PATH, or a few ${side} with --${side} id,id` },
  );
}

/** The lists of these users or items. */
function searched(
  model: Model,
  side: Side,
  ids: Ids,
  { n, exclude, deny, allow, coldItems, unknownUsers, names, index }: Searched,
): Dataset {
  if (side === 'items')
    return ids === 'all'
      ? model.recommendForAllItems(n, { exclude, names })
      : model.recommendForItems(ids, n, { exclude, names });
  const lists = { exclude, deny, allow, coldItems, names, index };
  return ids === 'all'
    ? model.recommendForAllUsers(n, lists)
    : model.recommendForUsers(ids, n, { ...lists, unknownUsers });
}

interface Searched extends Pick<
  RecommendValues,
  'n' | 'deny' | 'allow' | 'coldItems' | 'unknownUsers' | 'index'
> {
  readonly exclude: Dataset | undefined;
  readonly names: ItemNames | undefined;
}

/** The given ids that the model does not know. */
function unknownIn(
  model: Model,
  side: Side,
  ids: Ids,
  { deny, allow }: Pick<RecommendValues, 'deny' | 'allow'>,
): Asked['unknown'] {
  const users =
    side === 'users' && ids !== 'all' ? [...new Set(ids)].filter((id) => !model.hasUser(id)) : undefined;
  const items =
    deny || allow ? [...(deny ?? []), ...(allow ?? [])].filter((id) => !model.hasItem(id)) : undefined;
  return {
    ...(users ? { unknownUsers: users.map((id) => jsonId(id, model.idForms.user)) } : {}),
    ...(items ? { unknownItems: items.length } : {}),
  };
}

/** The requested lists. */
interface Asked {
  readonly n: number;
  readonly side: Side;
  readonly lists: number;
  readonly unknown: { readonly unknownUsers?: readonly (number | string)[]; readonly unknownItems?: number };
  readonly forms: Model['idForms'];
  readonly names: ItemNames | undefined;
  readonly findings: Findings;
  readonly excluding: boolean;
}

/** The counts and warnings of the search, once it has ended, and the unknown ids found before. */
function foundJson({ unknown, findings, excluding }: Asked): JsonObject {
  const excluded = excluding ? { unknownExcluded: findings.count('unknown-exclusions') } : {};
  return { ...unknown, ...excluded, warnings: findings.warnings };
}

async function written(
  found: Dataset,
  { output, sink }: { readonly output: string; readonly sink: CheckedSink },
  asked: Asked,
  { signal, expect }: CommandContext,
): Promise<CommandResult> {
  const { n, side, lists, findings } = asked;
  expect('write', lists * n);
  const { rows, bytes, files } = await found.runInto(sink, { signal, onEvent: findings.onEvent });
  const seconds = performance.now() / 1000;
  return {
    json: {
      command: 'recommend',
      [side]: lists,
      n,
      rows,
      missing: lists * n - rows,
      ...foundJson(asked),
      files,
      bytes,
      seconds: { total: seconds },
      output,
    },
    text: summaryOf(output, [
      [side, formatCount(lists)],
      ['recommendations', `${formatCount(rows)}, at most ${n} ${side === 'users' ? 'a user' : 'an item'}`],
      ['time', seconds3(seconds)],
      ['output', `${output} (${counted(files, 'file')}, ${formatBytes(bytes)})`],
    ]),
  };
}

async function printed(found: Dataset, asked: Asked, { signal }: CommandContext): Promise<CommandResult> {
  const { n, side, lists, forms, names, findings } = asked;
  const rows: Recommendation[] = [];
  const columns = side === 'users' ? forms : { user: forms.item, item: forms.user };
  for await (const batch of await found.stream({ signal, onEvent: findings.onEvent }))
    rows.push(...recommendationRows(batch, columns));
  const named =
    side === 'users'
      ? withItemNames(rows, names)
      : rows.map(({ user, rank, item, prediction }) => ({
          item: user,
          ...(names ? { name: names.get(user) ?? null } : {}),
          rank,
          user: item,
          prediction,
        }));
  return {
    json: {
      command: 'recommend',
      [side]: lists,
      n,
      rows: rows.length,
      missing: lists * n - rows.length,
      ...foundJson(asked),
      recommendations: named.map((row) => ({ ...row })),
    },
    text:
      side === 'users'
        ? recommendationTable(withItemNames(rows, names))
        : `${namesAbove(
            rows.map(({ user }) => user),
            names,
          )}${recommendationTable(rows, ['item', 'rank', 'user', 'prediction'])}`,
  };
}

function sideOf({
  users,
  items,
}: {
  readonly users: readonly string[] | undefined;
  readonly items: readonly string[] | undefined;
}): Side {
  if (users !== undefined && items !== undefined)
    throw new UsageError('give either --users or --items', {
      advice: 'The first finds items for users, the second users for items',
    });
  return items === undefined ? 'users' : 'items';
}

/** A warning in a command's result; `code` is null if it has none. */
type Finding = { readonly code: string | null; readonly text: string };

/** Collects the warnings and counts of a stream for a command's result, and passes all events on. */
class Findings {
  readonly #onEvent: EventSink;
  readonly #options: Options;
  readonly #counts = new Map<string, number>();
  readonly warnings: Finding[] = [];

  constructor(onEvent: EventSink, options: Options) {
    this.#onEvent = onEvent;
    this.#options = options;
  }

  readonly onEvent = (event: ProgressEvent): void => {
    if (event.type === 'warning')
      this.warnings.push({ code: event.code ?? null, text: nameFlags(event.text, this.#options) });
    if ((event.type === 'warning' || event.type === 'note') && event.code !== undefined)
      this.#counts.set(event.code, event.count ?? 1);
    this.#onEvent(event);
  };

  /** The count that the latest note or warning with this code told, or 0. */
  count(code: string): number {
    return this.#counts.get(code) ?? 0;
  }
}
