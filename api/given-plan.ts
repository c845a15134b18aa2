import { UsageError } from '../engine/errors.ts';
import type { Json, JsonObject } from '../engine/json.ts';
import { PLAN_VERSION, type PhysicalPlan } from '../engine/plan/physical-plan.ts';

/** A plan that was printed or saved: what decides a run, without what was measured. */
export type GivenPlan = Pick<PhysicalPlan, 'planVersion' | 'algorithm' | 'sizes' | 'params' | 'choices' | 'rounds' | 'start' | 'round' | 'measure' | 'end'> & { readonly devices: readonly { readonly place: string; readonly kind: string }[] };

const objects = ['sizes', 'params', 'choices'] as const;
const lists = ['devices', 'start', 'round', 'measure', 'end'] as const;
const compared = ['algorithm', 'sizes', 'params', 'choices', 'rounds', 'devices', 'start', 'round', 'measure', 'end'] as const;

/** Differences that a message names at most. */
const SHOWN = 3;

/** Throws UsageError for anything that is not a plan of this version. */
export function requirePlan(value: unknown): GivenPlan {
  const plan = value as Partial<Record<string, unknown>> | null;
  if (typeof plan !== 'object' || plan === null || plan.planVersion === undefined) throw new UsageError('this is no plan: it has no planVersion', { advice: 'Give the JSON of a plan' });
  if (plan.planVersion !== PLAN_VERSION) throw new UsageError(`this plan has version ${String(plan.planVersion)}, and this release runs plans of version ${PLAN_VERSION}`, { advice: 'Make the plan anew' });
  const isObject = (name: string) => typeof plan[name] === 'object' && plan[name] !== null && !Array.isArray(plan[name]);
  const missing = [...objects.filter((name) => !isObject(name)), ...lists.filter((name) => !Array.isArray(plan[name])), ...(typeof plan.algorithm === 'string' ? [] : ['algorithm'])];
  if (missing.length > 0) throw new UsageError(`this plan has no usable ${missing.join(', ')}`, { advice: 'Make the plan anew' });
  return value as GivenPlan;
}

/** The plan as it is saved: nothing that differs between runs of the same data, seed and plan, such as the number of threads. */
export function savedPlan({ planVersion, algorithm, sizes, params, choices, rounds, devices, start, round, measure, end }: PhysicalPlan): JsonObject {
  const stages = (list: PhysicalPlan['start']) => list.map(({ name, at, work }) => ({ name, at, work }));
  const saved: GivenPlan = { planVersion, algorithm, sizes, params, choices, rounds, devices: devices.map(({ place, kind }) => ({ place, kind })), start: stages(start), round: stages(round), measure: stages(measure), end: stages(end) };
  return JSON.parse(JSON.stringify(saved)) as JsonObject;
}

/**
 * Throws UsageError with the differences between a plan that was given and the one that the data and the devices at hand lead to
 * when the same choices are made.
 */
export function requireFits(given: GivenPlan, actual: PhysicalPlan): void {
  const [left, right] = [given, actual].map((plan) => savedPlan(plan as PhysicalPlan));
  const differences = compared.flatMap((name) => differencesOf(name, left[name], right[name]));
  if (differences.length === 0) return;
  const more = differences.length > SHOWN ? `; and ${differences.length - SHOWN} more` : '';
  throw new UsageError(`the plan does not fit: ${differences.slice(0, SHOWN).join('; ')}${more}`, { phase: 'plan', advice: 'Make the plan anew for these ratings, parameters and devices' });
}

function differencesOf(path: string, planned: Json | undefined, actual: Json | undefined): string[] {
  if (typeof planned === 'object' && planned !== null && typeof actual === 'object' && actual !== null && Array.isArray(planned) === Array.isArray(actual)) {
    const [left, right] = [planned as JsonObject, actual as JsonObject];
    const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    return names.flatMap((name) => differencesOf(Array.isArray(planned) ? `${path}[${name}]` : `${path}.${name}`, left[name], right[name]));
  }
  return planned === actual ? [] : [`${path} is ${JSON.stringify(planned) ?? 'not there'} in the plan, and ${JSON.stringify(actual) ?? 'not there'} here`];
}
