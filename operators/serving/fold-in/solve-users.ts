import { computeDevice } from '../../../engine/run/devices.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { dataSetName, type Partition, type PartitionRef, sharedArray } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { gramSlices } from '../../als/implicit/stages.ts';
import { ALL_ROWS } from '../../als/solver-choice.ts';
import { rowShifts } from '../../als/implicit/weights.ts';
import { factorStride } from '../../planner/sizes.ts';
import { hostForm, type RatingBlock } from '../../ratings/rating-block.ts';
import { balancedRanges, taskCount } from '../../ratings/row-ranges.ts';
import { addSliced, runTasks } from '../../tasks/run-tasks.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { RowRule } from './row-rule.ts';

const STAGE = 'fold-in';

/** Items that are held fixed: θ and with biases γ of those that occur, and of implicit data θ of all. */
export interface FixedItems {
  readonly factors: Float32Array;
  readonly biases: Float32Array;
  readonly all: Float32Array;
}

export interface SolvedUsers {
  readonly factors: Float32Array;
  readonly biases: Float32Array;
}

/**
 * The factors x of each row of a block, and with biases β, to a residual of at most 1e-5 of b, with the items
 * held fixed. The block's columns are rows of `fixed`. Runs where training would.
 *
 */
export async function solveUsers(
  block: RatingBlock,
  fixed: FixedItems,
  rule: RowRule,
  ctx: ExecutionContext,
): Promise<SolvedUsers> {
  const device = computeDevice(ctx.executor);
  const { rank: features } = rule;
  const name = dataSetName(STAGE);
  const ref = (part: string): PartitionRef => ({ name: `${name}/${part}`, partition: 0, version: 0 });
  const { place, strideStep } = device.info;
  const steps = new StepList(contracts);
  const shape = { rows: block.rows, columns: features, stride: factorStride(features, strideStep) };
  for (const matrix of ['previous', 'factors']) steps.allocate(STAGE, place, ref(matrix), shape);
  const factorsOf = (values: Float32Array): Partition => ({
    layout: 'factors',
    rows: values.length / features,
    columns: { values },
  });
  const given: [PartitionRef, Partition, string][] = [
    [block.ref, hostForm(block), place],
    [ref('fixed'), factorsOf(fixed.factors), place],
  ];
  const inputs = { block: block.ref, fixed: ref('fixed'), previous: ref('previous') };
  const outputs = { factors: ref('factors'), ...(rule.biases ? { bias: ref('bias') } : {}) };
  if (rule.biases) {
    given.push([
      ref('fixed-bias'),
      { layout: 'bias', rows: fixed.biases.length, columns: { values: fixed.biases } },
      place,
    ]);
    steps.allocate(STAGE, place, ref('bias'), { layout: 'bias', rows: block.rows, columns: 1, stride: 1 });
  }
  const slices = device.info.wholePasses
    ? [{ from: 0, to: block.rows }]
    : balancedRanges(block.offsets, taskCount(block.ratings));
  const exact = {
    rank: features,
    ...(settles(features, device)
      ? { cgBelow: ALL_ROWS, cgSteps: MOST_STEPS, settles: true }
      : { cgBelow: 0, cgSteps: 1 }),
    ...(await variantOf(device, block, features, rule, ctx)),
  };
  if (rule.implicit === undefined) {
    const { lambda, biasLambda, exponent, offset, damping, mean, biases, nonnegative } = rule;
    const params = {
      ...exact,
      lambda,
      exponent,
      offset,
      ...(biases ? { mean, damping, biasLambda } : {}),
      ...(nonnegative ? { nonnegative } : {}),
    };
    addSliced(
      steps,
      STAGE,
      place,
      {
        kernel: 'update',
        inputs: { ...inputs, ...(biases ? { fixedBias: ref('fixed-bias') } : {}) },
        outputs,
        params,
      },
      slices,
    );
  } else {
    const { alpha, base, unobserved } = rule.implicit;
    const shifts = rowShifts(block, fixed.all.length / features, {
      regParam: rule.lambda,
      regExponent: rule.exponent,
      unobservedWeight: base === 0 ? unobserved : undefined,
    });
    given.push(
      [ref('shifts'), { layout: 'row-shifts', rows: block.rows, columns: { values: shifts } }, place],
      [ref('all'), factorsOf(fixed.all), place],
    );
    steps.allocate(STAGE, place, ref('gram'), {
      rows: 16 * Math.ceil(features / 16),
      columns: features,
      stride: factorStride(features, strideStep),
    });
    addSliced(
      steps,
      STAGE,
      place,
      {
        kernel: 'gram',
        inputs: { factors: ref('all') },
        outputs: { gram: ref('gram') },
        params: { rank: features, weight: unobserved },
      },
      gramSlices(features, device.info.wholePasses),
    );
    addSliced(
      steps,
      STAGE,
      place,
      {
        kernel: 'update-implicit',
        inputs: { ...inputs, gram: ref('gram'), shifts: ref('shifts') },
        outputs,
        params: { ...exact, alpha, base, ...(rule.nonnegative ? { nonnegative: true } : {}) },
      },
      slices,
    );
    steps.free(STAGE, place, [ref('gram'), ref('shifts'), ref('all')]);
  }
  steps.handOut(STAGE, ref('factors'), place);
  if (rule.biases) steps.handOut(STAGE, ref('bias'), place);
  steps.free(STAGE, place, [
    ...['factors', 'previous', 'fixed', ...(rule.biases ? ['bias', 'fixed-bias'] : [])].map(ref),
    block.ref,
  ]);
  const [factors, bias] = (await runSteps(steps.steps, ctx, { given })).handed;
  return {
    factors: factors.columns.values as Float32Array,
    biases: (bias?.columns.values as Float32Array | undefined) ?? new Float32Array(0),
  };
}

/**
 * Features from which CG from x = 0 to an exact solve's residual, 4 to 9 steps with common λ, costs less than
 * the exact solve.
 */
const LEAST_SETTLING = 48;
/** Steps after which a row is solved exactly. */
const MOST_STEPS = 12;

function settles(features: number, { info }: Device): boolean {
  return features >= LEAST_SETTLING && !info.choosesKernels;
}

/** The kernel of a device that has several. */
async function variantOf(
  device: Device,
  block: RatingBlock,
  features: number,
  rule: RowRule,
  ctx: ExecutionContext,
) {
  if (!device.info.choosesKernels) return {};
  let [longest, largestRating] = [0, 0];
  for (let row = 0; row < block.rows; row++)
    longest = Math.max(longest, block.offsets[row + 1] - block.offsets[row]);
  for (const value of block.values) largestRating = Math.max(largestRating, Math.abs(value));
  const problem = {
    rank: features,
    solver: 'cholesky',
    cgSteps: 1,
    precision: 'f32',
    biases: rule.biases,
    rows: block.rows,
    columns: features,
    ratings: block.ratings,
    iterations: 1,
    longest,
    largestRating,
    ...(rule.implicit ? { implicit: true } : {}),
    ...(rule.nonnegative ? { nonnegative: true } : {}),
  } as const;
  const [{ variant, precision, ratingScale }] = await runTasks(ctx, STAGE, device.info.place, [
    { kernel: 'choose-update', inputs: {}, outputs: {}, params: problem },
  ]);
  return { variant, precision, ratingScale };
}

/**
 * The items at some positions of a model, whose rows have `width` numbers: θ, and with biases 1 and γ behind
 * it.
 */
export function fixedItems(
  values: Float32Array,
  width: number,
  { rank, biases }: RowRule,
  positions: Uint32Array,
): FixedItems {
  const factors = sharedArray(Float32Array, positions.length * rank);
  const own = sharedArray(Float32Array, biases ? positions.length : 0);
  positions.forEach((position, at) => {
    factors.set(values.subarray(position * width, position * width + rank), at * rank);
    if (biases) own[at] = values[position * width + rank + 1];
  });
  return { factors, biases: own, all: values };
}
