import type { PhysicalPlan } from '../../index.ts';
import type { Report } from '../page/section.ts';
import { planSection } from '../page/sections/plan.ts';
import { planVerdict } from './verdict.ts';

/** The page of `plan`. */
export function planPage(plan: PhysicalPlan): Report {
  return {
    title: `Plan: ${plan.algorithm.toUpperCase()}`,
    lead: { verdict: planVerdict(plan.memory) },
    sections: [planSection(plan)],
  };
}
