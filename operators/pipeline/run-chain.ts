import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BinaryOperator } from '../../engine/stream/binary-operator.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';

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
