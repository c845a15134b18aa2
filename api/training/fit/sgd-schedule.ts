import { isDeepStrictEqual } from 'node:util';
import { UsageError } from '../../../engine/errors.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import type { SgdParams } from '../../../operators/sgd/params.ts';
import { schedulesFor } from '../../../operators/sgd/schedules/choose-schedule.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { type GivenPlan, shown } from '../plans/given-plan.ts';

/** Most workers of a plan's schedule, equal to the limit of a session's `workers`. */
const MOST_WORKERS = 256;

/**
 * The schedule that a plan names. Throws UsageError unless the planner would offer it for these ratings and
 * the plan's number of workers.
 */
export function plannedSchedule(
  { choices }: GivenPlan,
  profiles: readonly RatingsProfile[],
  params: SgdParams,
  { compute }: PlanDevices,
): SgdSchedule {
  const { reasons, ...planned } = (choices.schedule ?? {}) as Partial<SgdSchedule>;
  const { workers = 0, rowBands, columnBands, kind } = planned;
  const isCount = Number.isInteger(workers) && workers >= 1 && workers <= MOST_WORKERS;
  const devices = compute.map((device) =>
    device.kind === 'cpu' && isCount ? { ...device, parallelism: workers } : device,
  );
  const suiting = profiles.flatMap((profile) => [...schedulesFor(profile, params, devices)]);
  const found = suiting.find(({ reasons: _reasons, ...schedule }) =>
    isDeepStrictEqual(JSON.parse(JSON.stringify(schedule)), planned),
  );
  if (found === undefined) {
    throw new UsageError(
      `the plan does not fit: its schedule ` +
        `${[kind, rowBands, columnBands, workers].map(shown).join(', ')} (kind, bands of rows, of ` +
        `columns, workers) does not exist for these ratings, parameters and devices`,
      { phase: 'plan', advice: 'Make the plan anew' },
    );
  }
  return Array.isArray(reasons) && reasons.every((reason) => typeof reason === 'string')
    ? { ...found, reasons }
    : found;
}
