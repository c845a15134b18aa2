/** The steps of small problems against steps that were worked out by hand (test/golden/steps). */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PartitionRef } from '../../../engine/partition.ts';
import { partBytes } from '../../../engine/plan/bound-plan.ts';
import type { Step } from '../../../engine/run/step.ts';
import type { SideGrid } from '../../../operators/als/plan/problem.ts';
import { type BoundProblem, boundAls, boundSgd, listsOfRun } from '../../support/steps/bound-problems.ts';
import { setOf } from '../../support/steps/check-steps.ts';
import { cpuInfo, gpuInfo } from '../../support/steps/small-problems.ts';

/** Three users rate both items. */
const small = {
  rows: [
    [0, 1],
    [0, 1],
    [0, 1],
  ],
  columns: 2,
  test: false,
};
/** Four users rate all four items. */
const square = { rows: Array.from({ length: 4 }, () => [0, 1, 2, 3]), columns: 4, test: false };

const problems: Record<string, () => BoundProblem | Promise<BoundProblem>> = {
  'als-cpu': () => boundAls({ ...small, devices: [cpuInfo] }, { rank: 2 }),
  'als-biases-gpu': () => boundAls({ ...small, devices: [gpuInfo(0)] }, { rank: 2, biases: true }),
  'als-spilled-cpu': () =>
    boundAls({ ...square, devices: [cpuInfo] }, { rank: 2 }, { users: spilled(3), items: spilled(2) }),
  'als-two-gpus': () =>
    boundAls(
      { ...square, devices: [gpuInfo(0), gpuInfo(1)] },
      { rank: 2, partitionUsers: '1,4', partitionItems: '1,4' },
    ),
  'als-vectors-two-gpus': () =>
    boundAls(
      { ...square, devices: [gpuInfo(0), gpuInfo(1)] },
      {
        rank: 2,
        partitionUsers: '1,2',
        partitionItems: '2,2',
        partitionSums: 'vectors',
        solver: 'cg',
        cgSteps: 2,
      },
    ),
  'als-partial-equations-two-gpus': () =>
    boundAls(
      { ...square, devices: [gpuInfo(0), gpuInfo(1)] },
      {
        rank: 2,
        partitionUsers: '1,2',
        partitionItems: '2,2',
        partitionSums: 'partial-equations',
        solver: 'cg',
        cgSteps: 2,
      },
    ),
  'sgd-blocks-cpu': () =>
    boundSgd({ ...square, devices: [cpuInfo] }, { rank: 2 }, (one) => ({
      ...one,
      rowBands: 2,
      columnBands: 4,
    })),
  'sgd-wavefront-cpu': () =>
    boundSgd({ ...square, devices: [cpuInfo] }, { rank: 2, schedule: 'wavefront' }, (one) => ({
      ...one,
      rowBands: 2,
      columnBands: 4,
    })),
  'sgd-hogwild-cpu': () => boundSgd({ ...small, devices: [cpuInfo] }, { rank: 2, schedule: 'hogwild' }),
  'sgd-tile-gpu': () => boundSgd({ ...small, devices: [gpuInfo(0)] }, { rank: 2, schedule: 'tile' }),
  'sgd-waves-gpu': () =>
    boundSgd({ ...small, devices: [gpuInfo(0)] }, { rank: 2, schedule: 'wavefront', precision: 'f32' }),
  'sgd-resident-gpu': () =>
    boundSgd({ ...square, devices: [gpuInfo(0)] }, { rank: 2, schedule: 'blocks', precision: 'f32' }),
  'sgd-staged-gpu': () =>
    boundSgd({ ...square, devices: [gpuInfo(0)] }, { rank: 2, schedule: 'blocks', precision: 'f32' }, staged),
  'sgd-turns-two-gpus': () =>
    boundSgd(
      { ...square, devices: [gpuInfo(0), gpuInfo(1)] },
      { rank: 2, schedule: 'blocks', precision: 'f16' },
    ),
  'sgd-two-gpus': () =>
    boundSgd(
      { ...square, devices: [gpuInfo(0), gpuInfo(1)] },
      { rank: 2, schedule: 'blocks', precision: 'f32' },
      staged,
    ),
};

/** Ratings in this number of files. */
function spilled(q: number): SideGrid {
  return { q, fixed: 'whole', factors: 'device', ratings: 'spill' };
}

function staged<Schedule extends { readonly deviceBlocks?: object }>(schedule: Schedule): Schedule {
  return { ...schedule, deviceBlocks: { ...schedule.deviceBlocks, resident: false } };
}

/** The name without the number of the run. */
function nameOf({ name, partition, version }: PartitionRef): string {
  return `${name.replace(/#\d+/, '').replace(/^(als|sgd)\//, '')}.${partition}@${version}`;
}

function lineOf({ stage, at, do: action }: Step, { bound }: BoundProblem): string {
  const names = (refs: readonly PartitionRef[]) => refs.map(nameOf).join(' ');
  const what = () => {
    switch (action.kind) {
      case 'task':
        return `run ${action.task.kernel} ${names(Object.values(action.task.inputs))} > ${names(Object.values(action.task.outputs))}`.trimEnd();
      case 'allocate': {
        const set = setOf(action.ref, bound);
        return `allocate ${nameOf(action.ref)} ${set && partBytes(bound, set, action.ref.partition, at)} B`;
      }
      case 'move':
        return `move ${nameOf(action.ref)} ${action.from} > ${action.to}${nameOf(action.as) === nameOf(action.ref) ? '' : ` as ${nameOf(action.as)}`}${action.wire ? ` in ${action.wire}` : ''}${action.load && bound.devices.some(({ place, ownMemory }) => place === action.to && ownMemory) ? ' now' : ''}`;
      case 'hand-out':
        return `hand-out ${nameOf(action.ref)}`;
      case 'free':
        return `free ${names(action.refs)}`;
    }
  };
  return `${stage} ${at}: ${what()}`;
}

/**
 * Makes drawn orders comparable with lists written by hand: the segments of a round are called a, b, c, d in
 * the order of their first visit, and the lines of steps of a grid in one memory are sorted.
 */
function textOf(name: string, problem: BoundProblem): string {
  const lists = listsOfRun(problem, ['good', 'good']).filter(({ name: list }) =>
    ['start', 'round 1', 'measure 1', 'free', 'round 2', 'end'].includes(list),
  );
  return lists
    .map(({ name: list, steps }) => {
      const lines = steps.map((step) => lineOf(step, problem));
      const brought = (line: string) =>
        name === 'sgd-two-gpus' && /move columns\.\d@\d host > gpu/.test(line);
      const sorted =
        name.endsWith('-cpu') || name === 'sgd-two-gpus'
          ? [
              ...lines.filter((line) => !line.startsWith('sgd-epoch')),
              ...lines.filter((line) => line.startsWith('sgd-epoch') && !brought(line)).sort(),
            ]
          : lines;
      const visits = steps.flatMap(({ stage, do: action }) =>
        stage === 'sgd-epoch' && action.kind === 'task' && action.task.inputs.block
          ? [action.task.inputs.block.partition]
          : [],
      );
      const visited = name === 'sgd-turns-two-gpus' ? [...new Set(visits)] : visits;
      const named = sorted.map((line) =>
        name.startsWith('sgd') && visited.length === 4
          ? line.replace(
              /(columns|grid\/\d)\.(\d)/g,
              (_, set: string, at: string) => `${set}.${'abcd'[visited.indexOf(Number(at))]}`,
            )
          : line,
      );
      return `[${list}]\n${named.map((line) => `${line}\n`).join('')}`;
    })
    .join('');
}

describe('the steps that were worked out by hand', () => {
  it.each(Object.keys(problems))('are those of %s', async (name) => {
    const text = readFileSync(resolve(import.meta.dirname, `../../golden/steps/${name}.txt`), 'utf8');
    const expected = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const got = textOf(name, await problems[name]())
      .split('\n')
      .filter((line) => line !== '');
    // A file ends where what follows is a repetition.
    expect(got.slice(0, expected.length)).toEqual(expected);
    expect(expected.length).toBeGreaterThan(8);
  });
});
