import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { alsTable } from '../../operators/als/params.ts';
import { idleParams } from '../../operators/params/table.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import type { TrainingReport } from './training-report.ts';

/** Parameters that are used only by plans for which the function returns true. */
const ofPlans: Readonly<Record<string, (stages: PhysicalPlan['round']) => boolean>> = {
  cgSteps: (stages) => stages.some(({ kernel }) => kernel?.includes('cg(') === true),
  partitionSums: (stages) => stages.some(({ partitions }) => (partitions?.p ?? 1) > 1),
};

/** The parameters that had an effect in a run, in the order of their table, without switches that are off. */
export function actedParams(training: TrainingReport): readonly (readonly [name: string, value: unknown])[] {
  const { plan } = training;
  const implicit = training.algorithm === 'als' && training.params.implicitPrefs;
  const idle =
    training.algorithm === 'als'
      ? idleParams(alsTable, training.params)
      : idleParams(sgdTable, training.params);
  const isIdle = (name: string, value: unknown) => {
    if (value === undefined || idle.has(name)) return true;
    if (value === false) return name !== 'biases' || implicit;
    if (name === 'precision') return plan.devices[0].kind !== 'gpu';
    return ofPlans[name]?.(plan.round) === false;
  };
  return Object.entries(training.params).filter(([name, value]) => !isIdle(name, value));
}
