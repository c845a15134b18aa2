/**
 * A task that is run twice gives the same bits and leaves its inputs as they are, or its contract says that
 * it steps in place.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CpuDevice } from '../../../cpu/device.ts';
import { handlers as cpuTasks } from '../../../cpu/generated/tasks.ts';
import type { Device } from '../../../engine/run/device.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { openGpuDevice } from '../../../gpu/open-gpu-device.ts';
import { handlers as gpuTasks } from '../../../gpu/generated/tasks.ts';
import { contracts, type UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { valuesOfTask } from '../../support/devices/values-of-task.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { bytesOf, cases, outcome } from './pure-cases.ts';
import { COLUMNS, RANK, ROWS } from './pure-inputs.ts';

describe.each([
  {
    kind: 'CPU',
    tasks: Object.keys(cpuTasks),
    open: async () => new CpuDevice({ threads: 2 }),
    skip: undefined,
  },
  { kind: 'GPU', tasks: Object.keys(gpuTasks), open: () => openGpuDevice(), skip: noGpu },
])('the tasks of a $kind', ({ kind, tasks, open, skip }) => {
  let device: Device;
  beforeAll(async () => {
    if (skip === undefined) device = await open();
  });
  afterAll(() => device?.close());

  it.skipIf(skip).each(tasks.filter((kernel) => cases[kernel]))(
    'give the same bits twice, and padding of 0: %s',
    async (kernel) => {
      const one = cases[kernel];
      const problem: UpdateProblem = {
        rank: RANK,
        solver: 'cg',
        cgSteps: 3,
        precision: 'f32',
        biases: false,
        rows: ROWS,
        columns: COLUMNS,
        ratings: 58,
        iterations: 10,
        longest: 20,
        largestRating: 5,
      };
      const problemOf = { ...problem, ...(kernel === 'update-implicit' ? { implicit: true } : {}) };
      const choice =
        (kernel.startsWith('update') || kernel === 'solve-equations') && device.info.choosesKernels
          ? await valuesOfTask(device, {
              kernel: 'choose-update',
              inputs: {},
              outputs: {},
              params: problemOf,
            })
          : undefined;
      const more: JsonObject = choice
        ? { variant: choice.variant, precision: choice.precision, ratingScale: choice.ratingScale }
        : {};
      const before = Object.values(one.inputs).map(bytesOf);
      const first = await outcome(device, kernel, one, 1, more);
      expect(await outcome(device, kernel, one, 2, more)).toEqual(first);
      expect(first.left).toEqual(before);
      expect(first.padding).toEqual([]);
    },
  );

  it('step in place only where their contracts say so', () => {
    if (kind === 'GPU') return;
    const others = tasks.filter((kernel) => cases[kernel] === undefined);
    expect(others.length).toBeGreaterThan(0);
    for (const kernel of others)
      expect(
        Object.values(contracts[kernel as keyof typeof contracts]).some(
          (how) => how === 'alone' || how === 'shared',
        ),
        kernel,
      ).toBe(true);
    for (const kernel of Object.keys(cases))
      expect(
        Object.values(contracts[kernel as keyof typeof contracts]).every(
          (how) => how === 'read' || how === 'write',
        ),
        kernel,
      ).toBe(true);
  });
});
