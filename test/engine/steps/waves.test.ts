/**
 * Stages over more parts than a place holds at once: two visits at a time have their copies there, and a new
 * part takes the place of the old one.
 */
import { describe, expect, it } from 'vitest';
import type { BoundPlan, Versions } from '../../../engine/plan/bound-plan.ts';
import { HOST, type Place } from '../../../engine/plan/place.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import { expand } from '../../../engine/run/expand.ts';
import type { Step, TaskContracts } from '../../../engine/run/step.ts';
import { checkEdges, LiveSet } from '../../support/steps/check-steps.ts';
import { eagerOrder, lateFrees, orderOf, peakIn } from '../../support/steps/orders.ts';
import { testRandom } from '../../support/ratings.ts';
import { gpuInfo } from '../../support/steps/small-problems.ts';

const contracts: TaskContracts = {
  solve: { block: 'read', previous: 'read', factors: 'write' },
  look: { factors: 'read' },
};
const PARTS = 4;
const GPU = 'gpu:0';

/** Blocks in host memory; the rows that are solved from them at `home`. */
function planWith(home: Place, measure: readonly Stage[] = []): BoundPlan {
  const at = Array.from({ length: PARTS }, () => GPU);
  const round: Stage[] = [
    {
      name: 'solve',
      at,
      work: {
        kind: 'tasks',
        tasks: [
          {
            kernel: 'solve',
            uses: { block: 'blocks', previous: { set: 'rows', version: 'old' }, factors: 'rows' },
          },
        ],
      },
    },
    ...measure,
  ];
  return {
    name: 'test',
    devices: [gpuInfo(0)],
    datasets: [
      {
        name: 'blocks',
        layout: 'block',
        given: true,
        parts: at.map(() => ({ rows: 8, bytes: 100, at: [HOST] })),
      },
      { name: 'rows', layout: 'factors', columns: 16, parts: at.map(() => ({ rows: 8, at: [home] })) },
    ],
    phases: { start: [], round, measure: [], end: [] },
    given: { blocks: at.map((_, partition) => ({ name: 'blocks', partition, version: 0 })) },
    slices: {},
  };
}

function roundOf(bound: BoundPlan, keep: readonly Versions[] = []): readonly Step[] {
  return expand(bound, contracts, 'round', { rows: 0 }, { number: 1 }, keep).steps;
}

function textOf({ id, at, after, ended, do: action }: Step): string {
  const waits = [...after, ...ended].sort((left, right) => left - right).join(' ');
  const names = (
    refs: readonly { readonly name: string; readonly partition: number; readonly version: number }[],
  ) =>
    refs
      .map(({ name, partition, version }) => `${name.replace('test/', '')}.${partition}@${version}`)
      .join(' ');
  switch (action.kind) {
    case 'task':
      return `${id} solve ${names(Object.values(action.task.inputs))} > ${names(Object.values(action.task.outputs))} after ${waits}`;
    case 'move':
      return `${id} ${names([action.ref])} ${action.from} > ${action.to}${action.load ? ' now' : ''} after ${waits}`;
    case 'allocate':
      return `${id} allocate ${names([action.ref])} after ${waits}`;
    default:
      return `${id} ${action.kind} ${at} ${'refs' in action ? names(action.refs) : ''} after ${waits}`;
  }
}

describe('a stage over parts', () => {
  it('brings the copies of the next part while one is worked on, and frees an old part behind its last reader', () => {
    expect(roundOf(planWith(GPU)).slice(0, 14).map(textOf)).toEqual([
      '0 blocks.0@0 host > gpu:0 now after ',
      '1 allocate rows.0@1 after ',
      '2 solve blocks.0@0 rows.0@0 > rows.0@1 after 0 1',
      '3 blocks.1@0 host > gpu:0 now after ',
      '4 allocate rows.1@1 after ',
      '5 solve blocks.1@0 rows.1@0 > rows.1@1 after 3 4',
      '6 free gpu:0 blocks.0@0 rows.0@0 after 0 2',
      '7 blocks.2@0 host > gpu:0 now after 2 6',
      '8 allocate rows.2@1 after 6',
      '9 solve blocks.2@0 rows.2@0 > rows.2@1 after 6 7 8',
      '10 free gpu:0 blocks.1@0 rows.1@0 after 3 5 6',
      '11 blocks.3@0 host > gpu:0 now after 5 10',
      '12 allocate rows.3@1 after 10',
      '13 solve blocks.3@0 rows.3@0 > rows.3@1 after 10 11 12',
    ]);
  });

  it('takes no more at a place than two parts beside the side, in whichever order the edges allow', () => {
    // 8 rows of 16 floats; two blocks and two more parts at most.
    const bound = planWith(GPU);
    const start: Step[] = Array.from({ length: PARTS }, (_, partition) => ({
      id: partition,
      stage: 'start',
      at: GPU,
      after: [],
      ended: [],
      do: {
        kind: 'allocate',
        ref: { name: 'test/rows', partition, version: 0 },
        shape: { rows: 8, columns: 16, stride: 16 },
      },
    }));
    for (const order of [
      (steps: readonly Step[]) => steps,
      (steps: readonly Step[]) => eagerOrder(steps, bound, testRandom(1)),
      (steps: readonly Step[]) => orderOf(steps, lateFrees),
    ]) {
      expect(peakIn(bound, [start, roundOf(bound)], order)[GPU]).toBe((PARTS + 2) * 8 * 16 * 4 + 2 * 100);
    }
  });

  it('brings parts from host memory home, where they take the place of the old ones', () => {
    const bound = planWith(HOST);
    const steps = roundOf(bound);
    const live = new LiveSet(bound, [
      ...bound.given.blocks,
      ...Array.from({ length: PARTS }, (_, partition) => ({ name: 'test/rows', partition, version: 0 })),
    ]);
    live.add(steps);
    expect([...checkEdges(steps, bound), ...live.problems]).toEqual([]);
    expect([...live.alive].sort()).toEqual(
      [0, 1, 2, 3].flatMap((n) => [`host blocks/${n}@0`, `host test/rows/${n}@1`]).sort(),
    );
    // Of version 0 a part is gone before the one after the next is begun.
    const text = steps.map(textOf);
    expect(text.findIndex((line) => line.includes('free host rows.0@0'))).toBeLessThan(
      text.findIndex((line) => line.includes('solve blocks.2@0')),
    );
  });

  it('leaves old parts where a version is kept, or a later stage reads them', () => {
    const freed = (steps: readonly Step[]) =>
      steps.flatMap(({ do: action }) =>
        action.kind === 'free'
          ? action.refs.filter(({ name, version }) => name === 'test/rows' && version === 0)
          : [],
      );
    expect(freed(roundOf(planWith(GPU), [{ rows: 0 }]))).toEqual([]);
    const looking: Stage = {
      name: 'look',
      at: Array.from({ length: PARTS }, () => GPU),
      work: {
        kind: 'tasks',
        tasks: [{ kernel: 'look', uses: { factors: { set: 'rows', version: 'old' } } }],
      },
    };
    const steps = roundOf(planWith(GPU, [looking]));
    expect(freed(steps).map(({ partition }) => partition)).toEqual([0, 1, 2, 3]);
    expect(
      steps.findIndex(
        ({ do: action }) =>
          action.kind === 'free' &&
          action.refs.some(({ version, name }) => name === 'test/rows' && version === 0),
      ),
    ).toBeGreaterThan(steps.findLastIndex(({ stage }) => stage === 'solve'));
  });
});
