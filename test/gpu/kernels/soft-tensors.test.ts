/**
 * The texts of the kernels that sum and solve on tensor cores, run by an adapter without them: their
 * subgroups and matrices are replaced by functions.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CG_HALF_LIMIT, CG_TENSOR_BIAS_LIMIT, CG_TENSOR_LIMIT } from '../../../gpu/checks/support/check.ts';
import { ratedProblem } from '../../../gpu/checks/support/rated-problem.ts';
import { updateError } from '../../../gpu/checks/tensor.check.ts';
import {
  updateInt8Kernel,
  type UpdateInt8Params,
  updateTensorKernel,
} from '../../../gpu/update/update-tensor.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { isDeep } from '../../support/deep.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';
import { withSoftTensors } from '../../support/gpu/soft-tensors.ts';

/** Around bins of 32 and 64, and rows without ratings. */
const lengths = [130, 0, 65, 64, 33, 1];

describe.skipIf(noGpu)('kernels on tensor cores, in software', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = withSoftTensors(await openTestGpu());
  });
  afterAll(() => gpu?.close());

  // One tile; three tiles with the ratings in the padding, so that one of two subgroups has two tile rows; in the
  // deep run also two tiles with an extra tile row for the ratings.
  const halves = [[7, true, false]] as const;
  const deepHalves = [
    [40, true, true],
    [9, false, false],
    [32, true, true],
    [40, false, false],
  ] as const;
  for (const [rank, halfA, biases] of isDeep ? [...halves, ...deepHalves] : halves) {
    it(`solve from float16 at rank ${rank}${halfA ? ', with A in float16' : ''}${biases ? ', with biases' : ''}`, async () => {
      const problem = ratedProblem({ rank, biases, precision: 'f16', lengths });
      const error = await updateError(gpu, updateTensorKernel, { rank, biases, halfA, bin: 32 }, problem, {
        scale: 2,
        expectation: { steps: 4, exactTo: -1 },
      });
      expect(error).toBeLessThanOrEqual(
        biases ? CG_TENSOR_BIAS_LIMIT : halfA ? CG_HALF_LIMIT : CG_TENSOR_LIMIT,
      );
    });
  }

  // Four of six tiles pass at a time, or the number that fits. Rings are stored after three tiles, or between
  // the lines of four.
  const rooms: readonly UpdateInt8Params[] = [{ rank: 33, halfA: false, biases: true }];
  const deepRooms: readonly UpdateInt8Params[] = [
    { rank: 33, halfA: true, biases: false, room: 4 },
    { rank: 48, halfA: true, biases: true },
    { rank: 64, halfA: false, biases: false },
  ];
  for (const params of isDeep ? [...rooms, ...deepRooms] : rooms) {
    const { rank, halfA, biases, room } = params;
    it(`solve from 8 bits at rank ${rank}${halfA ? ', with A in float16' : ''}${biases ? ', with biases' : ''}${room === undefined ? '' : `, ${room} tiles at a time`}`, async () => {
      const problem = ratedProblem({ rank, biases, precision: 'int8', lengths });
      const error = await updateError(gpu, updateInt8Kernel, params, problem, {
        scale: 1024,
        expectation: { steps: 4, exactTo: -1 },
        precision: 'int8',
      });
      expect(error).toBeLessThanOrEqual(
        biases ? CG_TENSOR_BIAS_LIMIT : halfA ? CG_HALF_LIMIT : CG_TENSOR_LIMIT,
      );
    });
  }
});
