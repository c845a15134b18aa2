/**
 * In tests, every task of a device finds NaN where it must not read: in its scratch memory, and in the rows of
 * its outputs that it has to write, padding included (poisoned-cpu.ts, poisoned-gpu.ts). What is left of an
 * earlier task can so never pass as a result.
 */
import { contracts } from '../../../operators/tasks/tasks.ts';
import type { JsonObject } from '../../../engine/json.ts';

export const NAN_BITS = 0x7fc0_0000;

/** Names of the outputs that a task writes without reading them. */
export function writtenBy(kernel: string): string[] {
  const uses: Readonly<Record<string, string>> = contracts[kernel as keyof typeof contracts] ?? {};
  return Object.keys(uses).filter((name) => uses[name] === 'write');
}

/**
 * The rows of an output that a task writes, all of them without `from` and `to`. None of a task that shares
 * its rows with another one, or that keeps some of them.
 */
export function rowsWritten(
  kernel: string,
  { from, to, only }: JsonObject,
  rows: number,
): readonly [number, number] {
  if (kernel === 'fit-coefficients') return [0, rows];
  if (only !== undefined) return [0, 0];
  return typeof from === 'number' && typeof to === 'number' ? [from, Math.min(to, rows)] : [0, rows];
}
