import type { ProgressEvent } from '../../index.ts';
import { counted, formatCount } from '../../engine/format.ts';

/** The progress of a phase. */
export interface PhaseState {
  readonly phase: string;
  readonly done: number;
  readonly total?: number;
  /** True if the total was estimated before the phase started. */
  readonly estimated: boolean;
  readonly unit: string;
  readonly seconds: number;
  readonly ended: boolean;
}

type Iteration = ProgressEvent & { readonly type: 'iteration' };

/** "iteration 3/10: 0.31 s, loss 344,542, train RMSE 0.9768, test RMSE 3.7519" */
export function iterationText({
  called = 'iteration',
  iteration,
  of,
  seconds,
  loss,
  trainRmse,
  testRmse,
  testMetrics = {},
}: Iteration): string {
  const parts = [seconds3(seconds), `loss ${significant(loss)}`];
  if (trainRmse !== undefined) parts.push(`train RMSE ${trainRmse.toFixed(4)}`);
  if (testRmse !== undefined) parts.push(`test RMSE ${testRmse.toFixed(4)}`);
  for (const [name, value] of Object.entries(testMetrics)) parts.push(`test ${name} ${value.toFixed(4)}`);
  return `${called} ${iteration}/${of}: ${parts.join(', ')}`;
}

/** "read: started, about 90,012 ratings"; without the number if it is unknown. */
export function startText({ phase, total, estimated, unit }: PhaseState): string {
  return `${phase}: started${total === undefined || (estimated && total === 0) ? '' : `, ${estimated ? 'about ' : ''}${countedIn(unit, total)}`}`;
}

/** "read: finished, 90,012 ratings in 0.21 s (428,629 ratings/s)" */
export function endText({ phase, done, unit, seconds }: PhaseState): string {
  const rate = unit === 'iterations' || unit === 'epochs' ? '' : ` (${rateText(done, seconds, unit)})`;
  return `${phase}: finished, ${countedIn(unit, done)} in ${seconds3(seconds)}${done > 0 ? rate : ''}`;
}

/**
 * "read     [=========---------]  45%  40,500/90,012 ratings  428,629 ratings/s  1.2 s left"; a counter if
 * the total is unknown.
 */
export function barText(state: PhaseState, width: number): string {
  const { phase, done, total, unit, seconds, ended } = state;
  const rate = rateText(done, seconds, unit);
  const head = phase.padEnd(9);
  if (total === undefined || total === 0)
    return `${head} ${countedIn(unit, done)}  ${rate}  ${seconds3(seconds)}`;
  const part = ended ? 1 : Math.min(1, done / total);
  const goal = ended ? done : total;
  const full = Math.round(part * width);
  const bar = `[${'='.repeat(full)}${'-'.repeat(width - full)}]`;
  const time = ended ? seconds3(seconds) : part > 0 ? `${seconds3((seconds * (1 - part)) / part)} left` : '';
  return `${head} ${bar} ${String(Math.floor(100 * part)).padStart(3)}%  ${formatCount(Math.floor(done))}/${formatCount(goal)} ${unit}  ${rate}  ${time}`.trimEnd();
}

export function warningText(text: string): string {
  return `factorflow: warning: ${text}`;
}

/** A duration as text: "0.31 s", "12.4 s", "3 min 20 s", "2 h 5 min". */
export function seconds3(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** A rate, or the time per unit if the rate is below 1. */
function rateText(done: number, seconds: number, unit: string): string {
  if (done <= 0 || seconds <= 0) return `- ${unit}/s`;
  const rate = done / seconds;
  if (rate >= 10) return `${formatCount(rate)} ${unit}/s`;
  return rate >= 1 ? `${rate.toFixed(1)} ${unit}/s` : `${seconds3(1 / rate)} each`;
}

/** A count with a unit given in the plural, such as 'ratings'. */
function countedIn(unit: string, count: number): string {
  return counted(count, unit.replace(/s$/, ''));
}

function significant(value: number): string {
  return Math.abs(value) >= 1000 ? formatCount(value) : value.toPrecision(5);
}
