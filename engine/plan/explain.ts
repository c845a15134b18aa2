import Table from 'cli-table3';
import { UsageError } from '../errors.ts';
import {
  shown as shownValue,
  counted,
  formatBytes,
  formatCount,
  formatFlops,
  formatMilliseconds,
} from '../format.ts';
import type { Json } from '../json.ts';
import type { Measure } from '../metrics.ts';
import { type PhysicalPlan, type PlannedStage, stagesOf } from './physical-plan.ts';

/** Rejected plans to print: the fastest ones. */
const SHOWN_REJECTED = 8;

/** The plan as text: the problem, the devices, a line for each stage, then the reasons for the choices. */
export function explain(plan: PhysicalPlan): string {
  if (!Array.isArray((plan as Partial<PhysicalPlan> | null | undefined)?.devices))
    throw new UsageError(`explain takes the plan of a trainer or a model, got ${shownValue(plan)}`);
  const lines = [
    `Physical plan: ${plan.algorithm}${plan.measured === undefined ? '' : ', with what a run measured'}`,
  ];
  for (const [name, value] of Object.entries(plan.problem)) lines.push(`  ${name.padEnd(10)} ${text(value)}`);
  for (const { place, capacityBytes, description } of plan.devices) {
    const capacity =
      capacityBytes === null
        ? 'its memory is not known'
        : `${formatBytes(capacityBytes)} for factors and scratch`;
    lines.push(`  ${'device'.padEnd(10)} ${place}: ${description}; ${capacity}`);
  }
  lines.push(
    `  ${'memory'.padEnd(10)} ${Object.entries(plan.memory)
      .map(([place, bytes]) => memoryText(place, bytes, plan.measuredMemory?.[place]))
      .join(', ')}`,
    '',
  );
  if (plan.estimate !== undefined) {
    const { seconds, computing, staging, exchange, rates } = plan.estimate;
    lines.splice(
      -1,
      0,
      `  ${'estimate'.padEnd(10)} ${formatMilliseconds(1000 * seconds)} a round: computing ${formatMilliseconds(1000 * computing)}, staging ${formatMilliseconds(1000 * staging)}, exchanges ${formatMilliseconds(1000 * exchange)}`,
      `  ${''.padEnd(10)} ${rates}`,
    );
  }
  const stages = stagesOf(plan);
  lines.push(stageTable(stages, plan.measured), '');
  stages.forEach(({ stage }, at) => {
    for (const reason of stage.reasons ?? []) lines.push(`  [${at}] ${stage.name}: ${reason}`);
  });
  for (const reason of plan.reasons) lines.push(`  ${reason}`);
  const rejected = plan.rejected ?? [];
  for (const { name, seconds, reason } of rejected.slice(0, SHOWN_REJECTED))
    lines.push(`  rejected: ${name}: about ${formatMilliseconds(1000 * seconds)} a round; ${reason}`);
  if (rejected.length > SHOWN_REJECTED)
    lines.push(`  rejected: ${counted(rejected.length - SHOWN_REJECTED, 'other')}, in the JSON of the plan`);
  return lines.join('\n');
}

function memoryText(place: string, planned: number, measured: number | undefined): string {
  return `${place} ${formatBytes(planned)}${measured === undefined ? '' : ` (measured ${formatBytes(measured)})`}`;
}

const columns = [
  '#',
  'stage',
  'phase',
  'at',
  'kernel',
  'p x q',
  'tasks',
  'times',
  'reads',
  'writes',
  'work',
  'exchange',
];

/** Table borders: none, with two spaces between columns. */
const noLines = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '  ',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
};

function stageTable(stages: readonly PlannedStage[], measured: PhysicalPlan['measured']): string {
  const head = measured === undefined ? columns : [...columns, 'measured'];
  const table = new Table({
    head,
    chars: noLines,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  stages.forEach((planned, at) => {
    const row = [String(at), ...cellsOf(planned)];
    table.push(measured === undefined ? row : [...row, shown(measured[planned.stage.name])]);
  });
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function cellsOf({ phase, stage, times }: PlannedStage): string[] {
  const { name, at, kernel, partitions, tasks, bytesRead, bytesWritten, flops, exchange } = stage;
  return [
    name,
    phase,
    [...new Set(at)].join(' '),
    kernel ?? '-',
    partitions ? `${partitions.p} x ${partitions.q}` : '-',
    tasks === undefined ? '-' : formatCount(tasks),
    String(times),
    bytesRead === undefined ? '-' : formatBytes(bytesRead),
    bytesWritten === undefined ? '-' : formatBytes(bytesWritten),
    flops === undefined ? '-' : formatFlops(flops),
    exchange ?? '-',
  ];
}

/**
 * The measures of a stage as text: rows, bytes copied into and out of the device's memory, time inside the
 * tasks (sum over all threads), and wall time.
 */
function shown(measured: Measure | undefined): string {
  if (measured === undefined) return '-';
  const parts = [`${formatCount(measured.runs)} runs`, `${formatCount(measured.rows)} rows`];
  if (measured.bytesUp > 0) parts.push(`up ${formatBytes(measured.bytesUp)}`);
  if (measured.bytesDown > 0) parts.push(`down ${formatBytes(measured.bytesDown)}`);
  parts.push(`busy ${formatMilliseconds(measured.milliseconds)}`);
  if (measured.wallMilliseconds > 0) parts.push(`wall ${formatMilliseconds(measured.wallMilliseconds)}`);
  return parts.join(', ');
}

function text(value: Json | undefined): string {
  if (typeof value === 'number') return Number.isInteger(value) ? formatCount(value) : String(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}
