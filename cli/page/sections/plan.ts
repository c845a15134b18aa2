import type { PhysicalPlan } from '../../../index.ts';
import { planFlow } from '../../../api/training/plans/plan-flow.ts';
import { formatBytes, formatCount, formatFlops, formatMilliseconds } from '../../../engine/format.ts';
import { planGraph } from '../plan-graph.ts';
import type { PageTable, Section } from '../section.ts';

/** The plan as a graph, its memory by place, its stages with planned and measured cost, and its reasons. */
export function planSection(plan: PhysicalPlan): Section {
  const { stages } = planFlow(plan);
  const memory: PageTable = {
    title: 'Memory at its peak, as planned',
    head: ['place', 'bytes'],
    rows: Object.entries(plan.memory).map(([place, bytes]) => [place, formatBytes(bytes)]),
  };
  const reasons = [
    ...stages.flatMap(({ stage }) => (stage.reasons ?? []).map((reason) => [stage.name, reason])),
    ...plan.reasons.map((reason) => ['plan', reason]),
  ];
  return {
    heading: 'Plan',
    text: `${plan.algorithm.toUpperCase()} on ${plan.devices.map(({ place, description }) => `${place} (${description})`).join(', ')}. Dashed arrows lead from one round to the next.`,
    drawing: () => planGraph(plan),
    tables: [
      stageTable(plan),
      memory,
      { title: 'Reasons', head: ['stage', 'reason'], rows: reasons, numbers: () => false },
    ],
  };
}

/** The stages in the order of the plan, with their work and their planned and measured cost. */
function stageTable({ measured, ...plan }: PhysicalPlan): PageTable {
  const optional = <T>(value: T | undefined, format: (known: T) => string) =>
    value === undefined ? '' : format(value);
  const rows = planFlow(plan).stages.map(({ phase, stage, times }) => {
    const own = measured?.[stage.name];
    const { name, at, kernel = '', tasks, bytesRead, bytesWritten, flops } = stage;
    return [
      name,
      phase,
      [...new Set(at)].join(' '),
      kernel,
      optional(tasks, formatCount),
      formatCount(times),
      optional(bytesRead, formatBytes),
      optional(bytesWritten, formatBytes),
      optional(flops, formatFlops),
      ...(measured === undefined
        ? []
        : [
            optional(own?.wallMilliseconds, formatMilliseconds),
            optional(own?.milliseconds, formatMilliseconds),
            own === undefined || own.bytesUp + own.bytesDown === 0
              ? ''
              : `${formatBytes(own.bytesUp)} up, ${formatBytes(own.bytesDown)} down`,
          ]),
    ];
  });
  const planned = ['stage', 'phase', 'at', 'kernel', 'tasks', 'times', 'reads', 'writes', 'work'];
  return {
    title: 'Stages',
    head: [...planned, ...(measured === undefined ? [] : ['wall time', 'time in tasks', 'moved'])],
    rows,
    numbers: (column) => column > 3,
  };
}
