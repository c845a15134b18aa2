import { MemoryWalk } from '../../../engine/run/walk.ts';
import type { BoundPlan } from '../../../engine/plan/bound-plan.ts';
import type { Step } from '../../../engine/run/step.ts';

/** One order of a list that its edges allow; `choose` takes one of the steps that may come next. */
export function orderOf(steps: readonly Step[], choose: (ready: readonly Step[]) => Step): Step[] {
  const done = new Set<number>();
  const left = new Set(steps);
  const order: Step[] = [];
  while (left.size > 0) {
    const ready = [...left].filter(({ after, ended }) =>
      [...after, ...ended].every((before) => done.has(before)),
    );
    const next = choose(ready);
    order.push(next);
    done.add(next.id);
    left.delete(next);
  }
  return order;
}

/** Takes frees last. */
export function lateFrees(ready: readonly Step[]): Step {
  return ready.find(({ do: { kind } }) => kind !== 'free') ?? ready[0];
}

/**
 * The order in which runSteps starts steps, if tasks, fetches and moves take the drawn times: a step starts
 * as soon as its edges allow, in list order.
 */
export function eagerOrder(steps: readonly Step[], bound: BoundPlan, random: () => number): Step[] {
  const inOrder = new Set(bound.devices.flatMap(({ place, inOrder: yes }) => (yes ? [place] : [])));
  const [sent, ended] = [new Set<number>(), new Set<number>()];
  const running: { readonly id: number; readonly at: string }[] = [];
  const order: Step[] = [];
  for (;;) {
    const next = steps.find(
      ({ id, at, after, ended: before }) =>
        !sent.has(id) &&
        after.every((one) => (inOrder.has(at) ? sent : ended).has(one)) &&
        before.every((one) => ended.has(one)),
    );
    if (next !== undefined) {
      sent.add(next.id);
      order.push(next);
      if (['task', 'move', 'hand-out'].includes(next.do.kind)) running.push(next);
      else ended.add(next.id);
      continue;
    }
    if (running.length === 0) return order;
    const able = running.filter(
      ({ at }, i) => !inOrder.has(at) || running.findIndex((one) => one.at === at) === i,
    );
    const finished = able[Math.floor(random() * able.length)];
    running.splice(running.indexOf(finished), 1);
    ended.add(finished.id);
  }
}

/** Peaks of lists that are carried out in other orders than their own. */
export function peakIn(
  bound: BoundPlan,
  lists: readonly (readonly Step[])[],
  order: (steps: readonly Step[]) => readonly Step[],
): Readonly<Record<string, number>> {
  const walk = new MemoryWalk(bound, { pools: false });
  for (const steps of lists) walk.add(order(steps));
  return walk.peak;
}
