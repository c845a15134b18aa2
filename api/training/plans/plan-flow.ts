import { type PhysicalPlan, type PlannedStage, stagesOf } from '../../../engine/plan/physical-plan.ts';
import { howOf, useOf } from '../../../engine/plan/stages.ts';
import type { TaskContracts } from '../../../engine/run/step.ts';
import { contracts } from '../../../operators/tasks/tasks.ts';

/** Data that one stage of a plan passes to another, by position in `stagesOf`. */
export interface PlanEdge {
  readonly from: number;
  readonly to: number;
  readonly data: readonly string[];
  /** True if the data are passed from one round to the next. */
  readonly back: boolean;
}

/**
 * The stages of a plan and the flow of data between them. A stage reads a data set from the stage that wrote
 * it last.
 */
export function planFlow(plan: PhysicalPlan): {
  readonly stages: readonly PlannedStage[];
  readonly edges: readonly PlanEdge[];
} {
  const stages = stagesOf(plan);
  const edges = new Map<string, { from: number; to: number; data: string[]; back: boolean }>();
  const connect = (from: number, to: number, data: string, back: boolean) => {
    const key = `${from} ${to} ${back}`;
    const found = edges.get(key);
    if (found === undefined) edges.set(key, { from, to, data: [data], back });
    else if (!found.data.includes(data)) found.data.push(data);
  };
  const loaded = stages.findLastIndex(({ phase }) => phase === 'load');
  for (let at = 1; at <= loaded; at++) connect(at - 1, at, 'ratings', false);
  const writers = new Map(
    loaded < 0 ? [] : plan.datasets.flatMap(({ name, given }) => (given ? [[name, loaded] as const] : [])),
  );
  const uses = stages.map(({ stage }) => dataOf(stage));
  uses.forEach(({ reads, writes }, at) => {
    for (const data of reads) {
      const from = writers.get(data);
      if (from !== undefined && from !== at) connect(from, at, data, false);
      // Data of the start are read in the first round; later rounds read them from the stage of the round
      // that writes them last.
      if (stages[at].phase !== 'round' || from === undefined || stages[from].phase === 'round') continue;
      const later = uses.findLastIndex((one, k) => stages[k].phase === 'round' && one.writes.has(data));
      if (later >= at) connect(later, at, data, true);
    }
    for (const data of writes) writers.set(data, at);
  });
  return { stages, edges: [...edges.values()] };
}

/** The data sets that a stage reads and writes. Data that it changes in place are in both sets. */
function dataOf({ work }: PlannedStage['stage']): {
  readonly reads: Set<string>;
  readonly writes: Set<string>;
} {
  const [reads, writes] = [new Set<string>(), new Set<string>()];
  if (work.kind === 'grown') return { reads, writes };
  if (work.kind === 'allocate') return { reads, writes: new Set(work.data) };
  if (work.kind === 'free') return { reads, writes };
  if (work.kind === 'exchange')
    return {
      reads: new Set(work.data),
      writes: new Set(
        work.how === 'share' || (work.how === 'move' && work.to !== 'host')
          ? work.data
          : work.how === 'move'
            ? []
            : work.to,
      ),
    };
  for (const { kernel, uses } of work.tasks) {
    for (const [name, planned] of Object.entries(uses)) {
      const use = useOf(planned);
      const how = howOf(use, (contracts as TaskContracts)[kernel]?.[name] ?? 'read');
      if (how !== 'write') reads.add(use.set);
      if (how !== 'read') writes.add(use.set);
    }
  }
  return { reads, writes };
}
