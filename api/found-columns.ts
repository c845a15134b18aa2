import type { Schema } from 'apache-arrow';
import { counted, formatCount } from '../engine/format.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { type LogicalPlan, rootSource } from '../engine/stream/logical-plan.ts';
import type { MixedColumn, Source } from '../engine/stream/operator.ts';
import {
  agreedNames,
  type ColumnNames,
  type ColumnRole,
  usualNames,
  type WantedColumns,
} from '../operators/ratings/rows/column-names.ts';
import { findColumns, noteOfRecognised } from '../operators/ratings/rows/columns.ts';

/** Columns that a method needs, with the names that its options and its model give. */
export interface NeededColumns extends Omit<WantedColumns, 'named'> {
  readonly roles: readonly ColumnRole[];
}

/** Rows with column names by role, such as a data set. */
interface NamedRows<Self> {
  readonly plan: LogicalPlan;
  readonly columns: ColumnNames;
  schema(options: { readonly signal: AbortSignal }): Promise<Schema>;
  withColumnNames(columns: ColumnNames): Self;
}

/**
 * The data set with the names of all needed columns (see findColumns). Opens the data only if a name is not
 * given; columns that were recognised by their names are reported as a note. Throws UsageError if options
 * name another column than the data set does, DataError if several columns are possible.
 */
export async function withFoundColumns<Rows extends NamedRows<Rows>>(
  dataset: Rows,
  { roles, given, preferred }: NeededColumns,
  { events, signal }: Pick<ExecutionContext, 'events' | 'signal'>,
): Promise<Rows> {
  const named = agreedNames({ named: dataset.columns, given });
  if (roles.every((role) => named[role] !== undefined)) {
    await warnOfMixedIds(dataset, named, { events });
    return dataset.withColumnNames(named);
  }
  const found = findColumns(await dataset.schema({ signal }), roles, { named, preferred });
  const note = noteOfRecognised(found);
  if (note !== undefined) events({ type: 'note', text: note });
  await warnOfMixedIds(dataset, found.columns, { events });
  return dataset.withColumnNames(found.columns);
}

/**
 * Sources whose mixed columns were already reported: a run opens a data set several times, but should warn
 * once.
 */
const warned = new WeakSet<Source>();

/**
 * Warns of id columns that are text only because a few values are not whole numbers; once for each source.
 */
async function warnOfMixedIds(
  { plan }: Pick<NamedRows<unknown>, 'plan'>,
  { user, item }: ColumnNames,
  { events }: Pick<ExecutionContext, 'events'>,
): Promise<void> {
  const source = rootSource(plan);
  if (source.mixedColumns === undefined || warned.has(source)) return;
  warned.add(source);
  const found = (await source.mixedColumns()).filter(({ column }) => column === user || column === item);
  for (const column of found) events({ type: 'warning', code: 'ids-read-as-text', text: mixedText(column) });
}

function mixedText({ column, file, line, text, texts, rows }: MixedColumn): string {
  const others = texts > 1 ? ` and ${counted(texts - 1, 'other text')}` : '';
  const key = /^\w+$/.test(column) ? column : JSON.stringify(column);
  return [
    `${column} is read as text because of line ${line} of ${file}, ${JSON.stringify(text.slice(0, 80))}${others}`,
    `; the rest of the first ${formatCount(rows)} rows has whole numbers. `,
    `Give types: { ${key}: 'int64' } to find such rows, and onBadRows: 'skip' to leave them out`,
  ].join('');
}

/**
 * Finds the user and item columns of pairs without ratings. `preferred`: the columns of a model, used if the
 * data have them.
 */
export async function pairsOf<Rows extends NamedRows<Rows>>(
  dataset: Rows,
  preferred: ColumnNames,
  ctx: Pick<ExecutionContext, 'events' | 'signal'>,
): Promise<{ readonly user: string; readonly item: string }> {
  const { columns } = await withFoundColumns(dataset, { roles: ['user', 'item'], preferred }, ctx);
  return { user: columns.user ?? usualNames.user, item: columns.item ?? usualNames.item };
}

/** Finds the user, item and rating columns; like pairsOf otherwise. */
export async function ratedPairsOf<Rows extends NamedRows<Rows>>(
  dataset: Rows,
  preferred: ColumnNames,
  ctx: Pick<ExecutionContext, 'events' | 'signal'>,
): Promise<{ readonly user: string; readonly item: string; readonly rating: string }> {
  const { columns } = await withFoundColumns(dataset, { roles: ['user', 'item', 'rating'], preferred }, ctx);
  return {
    user: columns.user ?? usualNames.user,
    item: columns.item ?? usualNames.item,
    rating: columns.rating ?? usualNames.rating,
  };
}

/** The column names of a data set as options of a split; options that are given must agree with them. */
export function pairOptions(
  { columns }: { readonly columns: ColumnNames },
  { userCol, itemCol }: { readonly userCol?: string | undefined; readonly itemCol?: string | undefined },
) {
  const { user, item } = agreedNames({
    named: columns,
    given: definedNames({ user: userCol, item: itemCol }),
  });
  return {
    ...(user === undefined ? {} : { userCol: user }),
    ...(item === undefined ? {} : { itemCol: item }),
  };
}

/** The names that are not undefined. */
export function definedNames(names: { readonly [Role in ColumnRole]?: string | undefined }): ColumnNames {
  return Object.fromEntries(Object.entries(names).filter(([, name]) => name !== undefined));
}
