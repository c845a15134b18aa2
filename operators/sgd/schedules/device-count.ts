import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { SgdParams } from '../params.ts';
import type { ScheduleProblem, SgdSchedule } from './schedule.ts';

/** Seconds of a step on one H200, a + b k: tiles at k = 64 and 128; and by Hogwild!, whose columns come from memory. */
const STEP = { base: 2.4e-11, perFeature: 3.9e-13, hogwild: 2.1e-12 } as const;

/** Bytes a second that a device sends while it receives as many, and seconds of a block beside its steps: measured on two H200. */
const PASSED = { bytesASecond: 5.5e9, perBlock: 5e-4 } as const;

/** Several devices must save so much: they take memory, and the estimate is one. */
const SAVES = 0.15;

/** The seconds of an epoch on several devices: those of the steps, or of the columns that pass from one to the other at the same time. */
export function sharedSeconds({ ratings = 0 }: ScheduleProblem, { rank }: SgdParams, { rowBands, columnBands, deviceBlocks }: SgdSchedule): number {
  const steps = stepSeconds(ratings, rank, deviceBlocks?.steps ?? 'tile') / rowBands;
  const passed = (deviceBlocks?.movedBytes ?? 0) / rowBands / PASSED.bytesASecond;
  // The first segment passes behind its steps, and the last one is stepped behind its passing.
  return Math.max(steps, passed + (2 * steps) / columnBands) + PASSED.perBlock * columnBands;
}

function stepSeconds(ratings: number, rank: number, kind: SgdSchedule['kind']): number {
  return ratings * (kind === 'hogwild' ? STEP.hogwild * rank : STEP.base + STEP.perFeature * rank);
}

/** The reason to step all ratings on one GPU where there are several: steps and passed columns take longer there. Undefined where several save time. */
export function reasonForOne(problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[], one: SgdSchedule, shared: SgdSchedule): string | undefined {
  const { ratings } = problem;
  const { deviceBlocks } = shared;
  if (ratings === undefined || !deviceBlocks?.resident || devices.some(({ ownMemory, description }) => !ownMemory || description.endsWith(SOFTWARE_MARK))) return undefined;
  const alone = stepSeconds(ratings, params.rank, one.kind);
  const together = sharedSeconds(problem, params, shared);
  if (together < (1 - SAVES) * alone) return undefined;
  return `one of ${devices.length} devices: an epoch takes about ${formatMilliseconds(1000 * alone)} there, and ${formatMilliseconds(1000 * together)} on all of them, which pass ${formatBytes(deviceBlocks.movedBytes)} of columns on`;
}
