import Table from 'cli-table3';
import { formatBytes, formatCount, formatFlops, formatMilliseconds } from './format.ts';
import type { Json } from './json.ts';
import type { PhysicalPlan, StagePlan } from './physical-plan.ts';

/** The plan as text: the problem, the devices, a line for each stage, then the reasons for what was chosen. */
export function explain(plan: PhysicalPlan): string {
  const analyzed = plan.stages.some((stage) => stage.measured !== undefined);
  const lines = [`Physical plan: ${plan.algorithm}${analyzed ? ', with what a run measured' : ''}`];
  for (const [name, value] of Object.entries(plan.problem)) lines.push(`  ${name.padEnd(10)} ${text(value)}`);
  for (const device of plan.devices) {
    const capacity = device.capacityBytes === null ? 'its memory is not known' : `${formatBytes(device.capacityBytes)} for factors and scratch`;
    lines.push(`  ${'device'.padEnd(10)} ${device.name}: ${device.description}; ${capacity}`);
  }
  lines.push(`  ${'memory'.padEnd(10)} host ${formatBytes(plan.memory.hostBytes)}, device ${formatBytes(plan.memory.deviceBytes)}`, '');
  lines.push(stageTable(plan.stages, analyzed), '');
  for (const stage of plan.stages) for (const reason of stage.reasons ?? []) lines.push(`  [${stage.id}] ${stage.name}: ${reason}`);
  for (const reason of plan.reasons) lines.push(`  ${reason}`);
  return lines.join('\n');
}

function stageTable(stages: readonly StagePlan[], analyzed: boolean): string {
  const head = ['#', 'stage', 'from', 'device', 'kernel', 'p x q', 'tasks', 'times', 'reads', 'writes', 'work', 'exchange'];
  if (analyzed) head.push('measured');
  const plain = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '', 'bottom-left': '', 'bottom-right': '', left: '  ', 'left-mid': '', mid: '', 'mid-mid': '', right: '', 'right-mid': '', middle: '  ' };
  const table = new Table({ head, chars: plain, style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 } });
  for (const stage of stages) {
    const row = [
      String(stage.id),
      stage.name,
      stage.inputs.join(',') || '-',
      stage.device,
      stage.kernel ?? '-',
      stage.partitions ? `${stage.partitions.p} x ${stage.partitions.q}` : '-',
      stage.tasks === undefined ? '-' : formatCount(stage.tasks),
      String(stage.repeat ?? 1),
      stage.bytesRead === undefined ? '-' : formatBytes(stage.bytesRead),
      stage.bytesWritten === undefined ? '-' : formatBytes(stage.bytesWritten),
      stage.flops === undefined ? '-' : formatFlops(stage.flops),
      stage.exchange ?? '-',
    ];
    table.push(analyzed ? [...row, measure(stage)] : row);
  }
  return table.toString().split('\n').map((line) => line.trimEnd()).join('\n');
}

/** Rows, bytes copied into and out of the device's memory, time inside the tasks over all threads, and time that passed. */
function measure({ measured }: StagePlan): string {
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
