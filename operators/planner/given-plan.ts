import { UsageError } from '../../engine/errors.ts';
import { withoutControls } from '../../engine/format.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import { PLAN_VERSION, type PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { planSizes, type RatingsProfile } from './sizes.ts';

/** The parts of a plan that determine a run, without measurements. */
export type GivenPlan = Pick<
  PhysicalPlan,
  | 'planVersion'
  | 'algorithm'
  | 'sizes'
  | 'params'
  | 'choices'
  | 'rounds'
  | 'start'
  | 'round'
  | 'measure'
  | 'end'
> & { readonly devices: readonly { readonly place: string; readonly kind: string }[] };

const objects = ['sizes', 'params', 'choices'] as const;
const lists = ['devices', 'start', 'round', 'measure', 'end'] as const;
const compared = ['rounds', 'devices', 'start', 'round', 'measure', 'end'] as const;

/** Messages show at most this number of differences, and of characters of a value or a name. */
const SHOWN = 3;
const SHOWN_CHARACTERS = 60;

/**
 * Checks a plan of this version: one made by the API, or JSON of any origin. Throws UsageError for anything
 * else.
 */
export function requirePlan(value: unknown): GivenPlan {
  const plan = value as Partial<Record<string, unknown>> | null;
  if (typeof plan !== 'object' || plan === null || plan.planVersion === undefined)
    throw new UsageError('this is not a plan: it has no planVersion', { advice: 'Give the JSON of a plan' });
  if (plan.planVersion !== PLAN_VERSION)
    throw new UsageError(
      `this plan has version ${valueText(plan.planVersion)}, and this release runs plans of version ${PLAN_VERSION}`,
      { advice: 'Make the plan anew' },
    );
  const isUsable = (name: string) => isObject(plan[name]);
  const isList = (name: string) => Array.isArray(plan[name]) && (plan[name] as unknown[]).every(isObject);
  const missing = [
    ...(typeof plan.algorithm === 'string' ? [] : ['algorithm']),
    ...objects.filter((name) => !isUsable(name)),
    ...lists.filter((name) => !isList(name)),
  ];
  if (missing.length > 0)
    throw new UsageError(`this plan has no usable ${missing.join(', ')}`, { advice: 'Make the plan anew' });
  return plan as unknown as GivenPlan;
}

/**
 * The plan in the form that is saved: without everything that differs between runs of the same data, seed and
 * plan, such as the number of threads.
 */
export function savedPlan(plan: PhysicalPlan): JsonObject {
  return JSON.parse(JSON.stringify(deciding(plan))) as JsonObject;
}

function deciding(plan: GivenPlan): GivenPlan {
  const { planVersion, algorithm, sizes, params, choices, rounds, devices } = plan;
  const stages = (list: PhysicalPlan['start']) => list.map(({ name, at, work }) => ({ name, at, work }));
  return {
    planVersion,
    algorithm,
    sizes,
    params,
    choices,
    rounds,
    devices: devices.map(({ place, kind }) => ({ place, kind })),
    start: stages(plan.start),
    round: stages(plan.round),
    measure: stages(plan.measure),
    end: stages(plan.end),
  };
}

/**
 * Throws UsageError for a plan of another algorithm or other parameters, and for a plan of a training that
 * continues a model.
 */
export function requireProblem(
  { algorithm, params, choices }: GivenPlan,
  actual: { readonly algorithm: string; readonly params: object },
): void {
  requireNone([
    [
      ...differencesOf('algorithm', algorithm, actual.algorithm),
      ...differencesOf('params', params, { ...actual.params } as JsonObject),
    ],
  ]);
  if (choices.start !== undefined)
    throw new UsageError('the plan does not fit: it continues a model, and this training starts anew', {
      phase: 'plan',
      advice: 'Update the model instead',
    });
}

/** The available devices that the plan computes on. Throws UsageError naming a missing device. */
export function plannedDevices({ devices }: GivenPlan, { compute, host }: PlanDevices): PlanDevices {
  const there = new Map([host, ...compute].map(({ place, kind }) => [place, kind]));
  const missing = devices.find(({ place, kind }) => there.get(place) !== kind);
  const used = compute.filter(({ place }) => devices.some((device) => device.place === place));
  if (missing !== undefined || used.length === 0) {
    const names = (list: readonly { readonly place: string }[]) =>
      list
        .map(({ place }) =>
          typeof place === 'string' && /^[\w:]+$/.test(place)
            ? place.slice(0, SHOWN_CHARACTERS)
            : valueText(place),
        )
        .join(', ');
    throw new UsageError(
      `the plan does not fit: it computes on ${names(devices) || 'nothing'}, and this session on ${names(compute)}`,
      { phase: 'plan', advice: 'Open the devices of the plan, or make the plan anew' },
    );
  }
  return { compute: used, host };
}

/**
 * The numbers in the plan of parameters for which the caller asks `auto`. The value of `auto` depends on the
 * ratings, so the training is planned with these numbers before the ratings are read. After that, `auto` is
 * computed from the ratings, and the plan must have the same value. The sizes in the plan do not give it:
 * `auto` counts repeated pairs, which these sizes may leave out.
 */
export function plannedAutos(
  { params }: GivenPlan,
  asked: { readonly [name: string]: unknown },
): { readonly [name: string]: number } {
  const entries = Object.entries(params as JsonObject).filter(
    ([name, value]) => asked[name] === 'auto' && typeof value === 'number',
  );
  return Object.fromEntries(entries) as { [name: string]: number };
}

/**
 * Throws UsageError unless the plan's sizes equal one of the actual sizes: of the ratings that are trained on, or
 * of the ratings as read, which include repeated pairs and pairs of unknown users and items.
 */
export function requireSizes({ sizes }: GivenPlan, actual: readonly RatingsProfile[]): void {
  requireNone(actual.map((profile) => differencesOf('sizes', sizes, planSizes(profile))));
}

/**
 * Throws UsageError unless the given plan's stages and devices equal one of `actual`: the plans that are
 * possible for these data with the same choices.
 */
export function requireFits(given: GivenPlan, actual: readonly PhysicalPlan[]): void {
  const left = deciding(given) as unknown as JsonObject;
  requireNone(
    actual.map((plan) => {
      const right = savedPlan(plan);
      const chosen = [given.choices, plan.choices].map((choices) => Object.keys(choices).sort().join(', '));
      return [
        ...differencesOf('choices', chosen[0], chosen[1]),
        ...compared.flatMap((name) => differencesOf(name, left[name], right[name])),
      ];
    }),
  );
}

/** Returns undefined if `make` throws UsageError, which means that a plan does not fit; else its result. */
export async function ifFits<Made>(make: () => Made | Promise<Made>): Promise<Made | undefined> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return undefined;
  }
}

/**
 * The differences between a saved plan and another plan. Only devices and choices are compared, since the
 * stages follow from them.
 */
export function planDifferences(saved: GivenPlan, plan: PhysicalPlan, where: string): string[] {
  const [left, right] = [deciding(saved) as unknown as JsonObject, savedPlan(plan)];
  const of = (names: readonly string[]) =>
    names.flatMap((name) => differencesOf(name, left[name], right[name], where));
  const chosen = of(['devices', 'choices']);
  return chosen.length > 0 ? chosen : of(compared.filter((name) => name !== 'rounds'));
}

/** The first differences as one text. */
export function changesText(differences: readonly string[]): string {
  const more = differences.length > SHOWN ? `; and ${differences.length - SHOWN} more` : '';
  return `${differences.slice(0, SHOWN).join('; ')}${more}`;
}

/**
 * Each list has the differences from one possible plan. Throws UsageError with the shortest list, unless a
 * list is empty.
 */
function requireNone(lists: readonly (readonly string[])[]): void {
  const differences = lists.reduce((left, right) => (right.length < left.length ? right : left));
  if (differences.length === 0) return;
  throw new UsageError(`the plan does not fit: ${changesText(differences)}`, {
    phase: 'plan',
    advice: 'Make the plan anew for these ratings, parameters and devices',
  });
}

/** The differences of two values, such as "rank is 10 in the plan, and 12 here". */
export function differencesOf(
  path: string,
  planned: Json | undefined,
  actual: Json | undefined,
  where = 'the plan',
): string[] {
  if (
    typeof planned === 'object' &&
    planned !== null &&
    typeof actual === 'object' &&
    actual !== null &&
    Array.isArray(planned) === Array.isArray(actual)
  ) {
    const [left, right] = [planned as JsonObject, actual as JsonObject];
    const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    return names.flatMap((name) =>
      differencesOf(
        `${path}${Array.isArray(planned) ? `[${name}]` : `.${nameText(name)}`}`,
        left[name],
        right[name],
        where,
      ),
    );
  }
  return planned === actual
    ? []
    : [`${path} is ${valueText(planned)} in ${where}, and ${valueText(actual)} here`];
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A short text for a plan's value in a message. */
export function valueText(value: unknown): string {
  if (value === undefined) return 'not there';
  if (typeof value === 'object' && value !== null)
    return Array.isArray(value) ? `a list of ${value.length}` : 'an object';
  return withoutControls(JSON.stringify(value) ?? typeof value).slice(0, SHOWN_CHARACTERS);
}

/** A name of a plan or checkpoint in a message; in quotes if it is unusual. */
export function nameText(name: string): string {
  return /^[\w-]{1,60}$/.test(name) ? name : valueText(name);
}
