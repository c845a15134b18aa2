import { counted, formatBytes, formatCount, formatMilliseconds } from '../../engine/format.ts';
import type { Measure } from '../../engine/metrics.ts';
import type { LogicalPlan } from '../../engine/stream/logical-plan.ts';
import { EXCHANGE, EXCHANGE_IN_FILES } from '../../operators/exchange/exchanged-rows.ts';
import { runRows } from '../run-rows.ts';
import type { RunOptions, RunSession } from '../run-session.ts';

/** Runs a plan; returns the rows, bytes and times of its operators, tasks and exchanges as text. */
export async function analyzeRows(
  plan: LogicalPlan,
  session: RunSession,
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

/**
 * One line about an operator or a stage. Tasks of a stage run in several threads at once; an operator in the
 * calling thread processes batches.
 */
function lineOf(name: string, { runs, rows, bytesDown, milliseconds, wallMilliseconds }: Measure): string {
  if (name === EXCHANGE_IN_FILES) return `${name}: ${formatBytes(bytesDown)}`;
  const isStage = wallMilliseconds > 0 || name.startsWith(EXCHANGE);
  const units = isStage ? counted(runs, 'task') : `${formatCount(runs)} ${runs === 1 ? 'batch' : 'batches'}`;
  const where = isStage ? 'in all threads together' : 'in the calling thread';
  const facts = [
    ...(runs > 0 ? [`${counted(rows, 'row')} in ${units}`] : []),
    ...(bytesDown > 0 ? [`${formatBytes(bytesDown)} made`] : []),
    ...(wallMilliseconds > 0 ? [`took ${formatMilliseconds(wallMilliseconds)}`] : []),
    ...(milliseconds > 0 ? [`${formatMilliseconds(milliseconds)} ${where}`] : []),
  ];
  return `${name}: ${facts.join(', ')}`;
}
