import { explain } from '../../../engine/plan/explain.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { type GivenPlan, requirePlan } from '../../../operators/planner/given-plan.ts';

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

/** The plan of the option `plan`: one made by the API, or JSON. Throws the errors of requirePlan. */
export function givenPlan(value: unknown): GivenPlan {
  return requirePlan(value instanceof ExplainedPlan ? value.plan : value);
}
