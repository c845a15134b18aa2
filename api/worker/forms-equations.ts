import { UsageError } from '../../engine/errors.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevice } from '../../engine/run/devices.ts';
import { MAXIMUM_FORMED_RANK } from '../../operators/params/common.ts';

/** True if a worker can form and sum the equations of rows: on a CPU, up to the largest rank that is formed. */
export function formsEquations({ executor }: ExecutionContext, rank: number): boolean {
  return computeDevice(executor).info.kind === 'cpu' && rank <= MAXIMUM_FORMED_RANK;
}

/** Throws UsageError if a worker cannot form equations. */
export function requireEquations(ctx: ExecutionContext, rank: number): void {
  if (formsEquations(ctx, rank)) return;
  throw new UsageError(
    `equations are formed on a CPU and up to rank ${MAXIMUM_FORMED_RANK}, and not here at rank ${rank}`,
    { phase: 'train', advice: 'Exchange rows: send, fixed' },
  );
}
