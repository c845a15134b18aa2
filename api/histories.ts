import { join } from 'node:path';
import { HISTORIES } from '../connectors/model/model-store.ts';
import { ParquetSource } from '../connectors/parquet/parquet-source.ts';
import { UsageError } from '../engine/errors.ts';
import type { KeyType } from '../engine/keys/key-column.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import { andThen, fromSource, rootSource } from '../engine/stream/logical-plan.ts';
import type { BatchStream } from '../engine/stream/stream.ts';
import { FlattenHistories, ListHistories } from '../operators/ratings/histories.ts';
import type { ColumnNames } from '../operators/ratings/rows/column-names.ts';
import { SelectRatings } from '../operators/ratings/rows/select-ratings.ts';
import { Dataset } from './dataset.ts';
import { ratedPairsOf } from './found-columns.ts';
import type { RatingInput } from './rating-input.ts';
import { runRows } from './run-rows.ts';
import type { RunSession } from './run-session.ts';
import { unratedAsOnes } from './training/unrated-as-ones.ts';

/** Users of a batch that is read from a file of histories. */
const BATCH_USERS = 1 << 12;

/** The ratings of each user. */
export interface RatedRows {
  /** Columns user, item and rating, and timestamp if `last` goes by it. */
  readonly rows: Dataset;
  /** True if only the last of several ratings of a pair counts: by timestamp, else by the order of rows. */
  readonly last: boolean;
  /** True if they were saved with the model, and added to since. */
  readonly saved: boolean;
  /** The same as {id, items, weights} by ascending id, as it is saved. */
  readonly lists?: Dataset;
}

/**
 * The ratings of a training, if they are in files. Others are not kept: rows in memory would stay there as
 * long as the model does.
 */
export function ratedRows(ratings: Dataset, input: RatingInput): RatedRows | undefined {
  if (rootSource(ratings.plan).splits === undefined) return undefined;
  return {
    rows: new Dataset(ratings.session, input.given(ratings)),
    last: input.onDuplicates === 'last',
    saved: false,
  };
}

/**
 * The ratings before and after an update, together, with the id types of the updated model. Undefined if
 * either of the two is not known.
 */
export function continuedRows(
  before: RatedRows | undefined,
  after: RatedRows | undefined,
  ids: Readonly<Record<'user' | 'item', KeyType>>,
  last: boolean,
): RatedRows | undefined {
  if (before === undefined || after === undefined) return undefined;
  const [old, added] = [before, after].map(({ rows, last: byTime }) =>
    (byTime ? rows.orderBy('timestamp') : rows).select('user', 'item', 'rating').cast(ids),
  );
  return { rows: old.union(added), last, saved: before.saved };
}

/** The histories in a model's folder. */
export async function savedRows(directory: string, session: RunSession): Promise<RatedRows> {
  const source = new ParquetSource(join(directory, HISTORIES), { batchSize: BATCH_USERS });
  const lists = new Dataset(session, fromSource(source));
  // Opens the files, so that later reads notice if others replace them.
  await lists.schema();
  const names = { user: 'user', item: 'item', rating: 'rating' };
  const rows = lists.pipe(new FlattenHistories()).withColumnNames(names);
  return { rows, last: false, saved: true, lists };
}

/**
 * The histories to save: {id, items, weights} by ascending id. `given`: the ratings, or true for those that
 * the model knows. Throws UsageError if it knows none.
 */
export async function historyLists(
  columns: ColumnNames,
  rated: RatedRows | undefined,
  given: true | Dataset,
  ctx: ExecutionContext,
): Promise<BatchStream> {
  const { rows, last, lists } = given === true ? known(rated) : await givenRows(columns, given, ctx);
  if (lists !== undefined) return runRows(lists, undefined, ctx);
  const { fields } = await rows.schema({ signal: ctx.signal });
  const sorted = rows.orderBy('user', 'item', ...fields.slice(3).map(({ name }) => name));
  return runRows(sorted.pipe(new ListHistories(last)), undefined, ctx);
}

function known(rated: RatedRows | undefined): RatedRows {
  if (rated !== undefined) return rated;
  throw new UsageError(
    'the model does not have the ratings of its training, which were not read from files',
    {
      phase: 'save',
      advice: 'Give them: histories: ratings',
    },
  );
}

async function givenRows(columns: ColumnNames, given: Dataset, ctx: ExecutionContext): Promise<RatedRows> {
  const { user, item, rating } = await ratedPairsOf(given, columns, ctx);
  const { session, plan } = await unratedAsOnes(given, rating, ctx);
  const rows = new Dataset(session, andThen(plan, new SelectRatings({ user, item, rating })));
  return { rows, last: false, saved: false };
}
