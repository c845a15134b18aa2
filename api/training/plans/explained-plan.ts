import { explain } from '../../../engine/plan/explain.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';

/** A physical plan that can print itself. */
export class ExplainedPlan {
  readonly plan: PhysicalPlan;

  constructor(plan: PhysicalPlan) {
    this.plan = plan;
  }

  toString(): string {
    return explain(this.plan);
  }

  toJSON(): PhysicalPlan {
    return this.plan;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
