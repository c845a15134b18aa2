import { counted, formatBytes, formatCount, formatMilliseconds } from '../../engine/format.ts';
import type { Measure } from '../../engine/metrics.ts';
import type { LogicalPlan } from '../../engine/stream/logical-plan.ts';
import { EXCHANGE_IN_FILES } from '../../operators/exchange/exchange-input.ts';
import { runRows } from '../run-rows.ts';
import type { RunOptions, Session } from '../session.ts';

/** Runs a plan; the rows, bytes and times of its operators, tasks and exchanges as text. */
export async function analyzeRows(
  plan: LogicalPlan,
  session: Session,
  options: Pick<RunOptions, 'signal'>,
): Promise<string> {
  const ctx = session.context(options);
  const start = performance.now();
  let rows = 0;
  for await (const { numRows } of await runRows({ plan, session }, undefined, ctx)) rows += numRows;
  const all = formatMilliseconds(performance.now() - start);
  return [
    'Measured',
    `  ${all} in all: ${counted(rows, 'row')}`,
    ...[...ctx.metrics.entries()].map(([name, measure]) => `  ${lineOf(name, measure)}`),
  ].join('\n');
}

function lineOf(name: string, { runs, rows, bytesDown, milliseconds, wallMilliseconds }: Measure): string {
  if (name === EXCHANGE_IN_FILES) return `${name}: ${formatBytes(bytesDown)}`;
  const times = [
    ...(milliseconds > 0 ? [`${formatMilliseconds(milliseconds)} of threads`] : []),
    ...(wallMilliseconds > 0 ? [`${formatMilliseconds(wallMilliseconds)} by the clock`] : []),
  ];
  return [
    `${name}: ${formatCount(runs)} runs`,
    counted(rows, 'row'),
    ...(bytesDown > 0 ? [formatBytes(bytesDown)] : []),
    ...times,
  ].join(', ');
}
