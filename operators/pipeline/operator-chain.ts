import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BinaryOperator } from '../../engine/stream/binary-operator.ts';
import type { Operator, PortableOperator } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { Ones } from '../ratings/rows/ones.ts';
import { SelectRatings } from '../ratings/rows/select-ratings.ts';
import { RandomSplit } from '../splits/random-split.ts';
import { TimeSplit } from '../splits/time-split.ts';

/** An operator of a pipeline. A join has a second input in addition to the pipeline's rows. */
export type ChainOperator = Operator | BinaryOperator;

export function isBinary(operator: ChainOperator): operator is BinaryOperator {
  return 'build' in operator;
}

/** The rows after all operators. `others`: the second input of each join among them, in order. */
export function runChain(
  operators: readonly ChainOperator[],
  rows: BatchStream,
  others: readonly BatchStream[],
  ctx: ExecutionContext,
): BatchStream {
  let next = 0;
  return operators.reduce((stream, operator) => {
    if (!isBinary(operator)) return operator.execute(stream, ctx);
    const other = others[next++];
    return operator.build === 'right'
      ? operator.execute(stream, other, ctx)
      : operator.execute(other, stream, ctx);
  }, rows);
}

type Maker = (portable: never) => ChainOperator;

/**
 * Makers of the operators that can run in another thread, by name; each makes its operator from JSON. Modules
 * are imported on first use, since every thread that reads ratings loads this module and most need few
 * operators.
 */
const makers: Readonly<Record<string, () => Maker | Promise<Maker>>> = {
  aggregate: async () => (await import('../dataflow/aggregate/aggregate.ts')).Aggregate.from,
  'count-rows': async () => (await import('../dataflow/count-rows.ts')).CountRows.from,
  'distinct-rows': async () => (await import('../dataflow/distinct-rows.ts')).DistinctRows.from,
  'drop-nulls': async () => (await import('../dataflow/drop-nulls.ts')).DropNulls.from,
  filter: async () => (await import('../dataflow/filter.ts')).Filter.from,
  join: async () => (await import('../dataflow/join/join-rows.ts')).JoinRows.from,
  'map-batches': async () => (await import('../dataflow/map-batches.ts')).MapBatches.from,
  ones: () => Ones.from,
  project: async () => (await import('../dataflow/project.ts')).Project.from,
  'random-split': () => RandomSplit.from,
  sample: async () => (await import('../dataflow/sample.ts')).Sample.from,
  'sample-keys': async () => (await import('../exchange/sample-keys.ts')).SampleKeys.from,
  'select-ratings': () => SelectRatings.from,
  'sort-rows': async () => (await import('../dataflow/sort-rows.ts')).SortRows.from,
  'time-split': () => TimeSplit.from,
  'top-rows': async () => (await import('../dataflow/top-rows.ts')).TopRows.from,
};

/** The operators as JSON. Throws if one cannot run in another thread. */
export function portableOf(operators: readonly ChainOperator[]): PortableOperator[] {
  return operators.map((operator) => {
    const portable = operator.portable?.();
    if (portable === undefined) throw new Error(`the operator ${operator.name} has no portable form`);
    return portable;
  });
}

/** Makes an operator from its JSON. */
export async function operatorFrom(portable: PortableOperator): Promise<Operator> {
  const operator = await chainOperatorFrom(portable);
  if (isBinary(operator)) throw new Error(`the operator ${portable.operator} takes two inputs`);
  return operator;
}

/** Makes an operator of a pipeline from its JSON; unlike operatorFrom, it may be a join. */
export async function chainOperatorFrom(portable: PortableOperator): Promise<ChainOperator> {
  const load = makers[portable.operator];
  if (load === undefined) throw new Error(`no operator has the name ${portable.operator}`);
  return (await load())(portable as never);
}
