import type { JsonObject } from '../json.ts';
import { HOST, SPILL } from '../plan/place.ts';
import type { Action, Step } from '../run/step.ts';
import type { WorkingStage } from '../run/context.ts';
import type { TaskResult } from '../task.ts';
import { sharedClock } from '../threads/shared-clock.ts';
import type { Tracer } from './trace.ts';

/**
 * The place and row of a trace at which each kind of step is shown, except tasks; `at` is the step's own
 * place. Steps that free memory take no time and are not shown.
 */
const rows: Readonly<
  Record<
    Exclude<Action['kind'], 'task' | 'free'>,
    { readonly place: 'at' | 'host' | 'spill'; readonly row: string }
  >
> = {
  allocate: { place: 'at', row: 'allocations' },
  move: { place: 'host', row: 'exchanges' },
  'hand-out': { place: 'at', row: 'fetches' },
  spill: { place: 'spill', row: 'writes' },
};

/**
 * Returns a tracer that marks each span with the stage of the run's graph to which it belongs, and with
 * `speculative` if it is work on a guess.
 */
export function markedTracer(
  tracer: Tracer | undefined,
  within: WorkingStage | undefined,
): Tracer | undefined {
  if (tracer === undefined || within === undefined) return tracer;
  const { name, speculative } = within;
  const mark = { ...(name !== undefined && { within: name }), ...(speculative && { speculative }) };
  return { span: (one) => tracer.span({ ...one, args: { ...one.args, ...mark } }) };
}

/** Traces a task of a stage, and the work that its device reports with it. */
export function traceTask(
  tracer: Tracer,
  { stage, at, do: action }: Step,
  { metrics: { rows: count, bytesUp, bytesDown }, spans = [] }: TaskResult,
): void {
  const offset = performance.now() - sharedClock();
  spans.forEach(({ place = at, row, name, start, milliseconds, args }, i) => {
    const own: JsonObject = {
      kernel: action.kind === 'task' ? action.task.kernel : 'upload',
      rows: count,
      bytesUp,
      bytesDown,
    };
    tracer.span({
      place,
      row,
      name: i === 0 ? stage : name,
      start: start + offset,
      end: start + offset + milliseconds,
      args: i === 0 ? own : { stage, ...args },
    });
  });
}

/** Traces a step that is not a task. */
export function traceStep(
  tracer: Tracer,
  { stage, at, do: action }: Step,
  start: number,
  bytes?: number,
): void {
  if (action.kind === 'task' || action.kind === 'free') return;
  const { place, row } =
    action.kind === 'move' && action.from === SPILL
      ? { place: 'spill', row: 'reads' }
      : action.kind === 'move' && action.to === SPILL
        ? rows.spill
        : rows[action.kind];
  const moved = action.kind === 'move' ? { from: action.from, to: action.to } : {};
  tracer.span({
    place: place === 'at' ? at : place === 'host' ? HOST : place,
    row,
    name: stage,
    start,
    end: performance.now(),
    args: { what: action.kind, ...moved, ...(bytes === undefined ? {} : { bytes }) },
  });
}
