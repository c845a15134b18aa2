import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BinaryOperator, Operator, PortableOperator } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { Ones, SelectRatings } from '../ratings/rows/select-ratings.ts';
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

type OperatorClass = new (...args: never[]) => ChainOperator;

/**
 * The operators that can run in another thread, by name. Modules are imported on first use, since every thread
 * that reads ratings loads this module and most need few operators.
 */
const classes: Readonly<Record<string, () => OperatorClass | Promise<OperatorClass>>> = {
  aggregate: async () => (await import('../dataflow/aggregate/aggregate.ts')).Aggregate,
  'count-rows': async () => (await import('../dataflow/count-rows.ts')).CountRows,
  'distinct-rows': async () => (await import('../dataflow/distinct-rows.ts')).DistinctRows,
  explode: async () => (await import('../dataflow/explode.ts')).Explode,
  'drop-nulls': async () => (await import('../dataflow/drop-nulls.ts')).DropNulls,
  filter: async () => (await import('../dataflow/filter.ts')).Filter,
  join: async () => (await import('../dataflow/join/join-rows.ts')).JoinRows,
  'first-rows': async () => (await import('../dataflow/window/first-rows.ts')).FirstRows,
  'map-batches': async () => (await import('../dataflow/map-batches.ts')).MapBatches,
  'map-rows': async () => (await import('../dataflow/map-rows.ts')).MapRows,
  ones: () => Ones,
  project: async () => (await import('../dataflow/project.ts')).Project,
  'random-split': () => RandomSplit,
  sample: async () => (await import('../dataflow/sample.ts')).Sample,
  'sample-keys': async () => (await import('../exchange/sample-keys.ts')).SampleKeys,
  'select-ratings': () => SelectRatings,
  'sort-rows': async () => (await import('../dataflow/sort-rows.ts')).SortRows,
  'time-split': () => TimeSplit,
  'window-rows': async () => (await import('../dataflow/window/window-rows.ts')).WindowRows,
  'top-rows': async () => (await import('../dataflow/top-rows.ts')).TopRows,
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
  const load = classes[portable.operator];
  if (load === undefined) throw new Error(`no operator has the name ${portable.operator}`);
  // Arguments that are left out may be null, as JSON has them.
  const args = ((portable.args ?? []) as readonly unknown[]).map((arg) => arg ?? undefined);
  return new (await load())(...(args as never[]));
}
