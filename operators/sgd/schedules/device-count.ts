import { type DeviceInfo, SOFTWARE_MARK } from '../../../engine/plan/device-info.ts';
import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { SgdParams } from '../params.ts';
import type { ScheduleProblem, SgdSchedule } from './schedule.ts';

/** Seconds of a step on one H200, a + b k: tiles at k = 64 and 128; and by Hogwild!, whose columns come from memory. */
const STEP = { base: 1.4e-11, perFeature: 3.2e-13, hogwild: 2.1e-12 } as const;

/** Bytes a second of segments that go up to a device and come down, by one thread: measured at k = 64 and 128 on two H200. */
const MOVED_A_SECOND = 2.2e9;

/**
 * The reason to step all ratings on one GPU where there are several: their segments of columns go through host memory, which takes longer than the steps that it saves. Undefined where
 * several save time.
 */
export function reasonForOne({ ratings }: ScheduleProblem, { rank }: SgdParams, devices: readonly DeviceInfo[], one: SgdSchedule, blocks: SgdSchedule): string | undefined {
  const moved = blocks.deviceBlocks?.movedBytes;
  if (ratings === undefined || moved === undefined || devices.some(({ ownMemory, description }) => !ownMemory || description.endsWith(SOFTWARE_MARK))) return undefined;
  const seconds = (kind: SgdSchedule['kind'] | 'tile') => ratings * (kind === 'hogwild' ? STEP.hogwild * rank : STEP.base + STEP.perFeature * rank);
  const alone = seconds(one.kind);
  const shared = (seconds(blocks.deviceBlocks?.steps ?? 'tile') + (2 * moved) / MOVED_A_SECOND) / devices.length;
  if (shared < alone) return undefined;
  return `one of ${devices.length} devices: an epoch takes about ${formatMilliseconds(1000 * alone)} there, and ${formatMilliseconds(1000 * shared)} on all of them, which send ${formatBytes(moved)} of columns up and down`;
}
